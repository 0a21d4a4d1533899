/** The page: playground and monitor. */
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './tokens.css'
import { App } from './App.tsx'
import { takeEditToken } from './data/edit-token.ts'
import { mendLanguage } from './kit/language.ts'
import { applyTheme } from './shell/theme.ts'

mendLanguage(navigator)
applyTheme()
takeEditToken(window)
// The address was opened in a tab that shows the page already.
addEventListener('hashchange', () => takeEditToken(window))
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
