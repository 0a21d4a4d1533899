/** Light, dark, or as the system has it. */
import { remember, remembered, useRemembered } from '../data/remember.ts'

export type Theme = 'system' | 'light' | 'dark'

const themes: readonly Theme[] = ['system', 'light', 'dark']

function toTheme(word: string | undefined): Theme {
  return themes.find((each) => each === word) ?? 'system'
}

/** Before the first paint, and after each change. */
export function applyTheme(theme: Theme = toTheme(remembered('theme'))): void {
  const { dataset } = document.documentElement
  if (theme === 'system') delete dataset['theme']
  else dataset['theme'] = theme
}

export function setTheme(theme: Theme): void {
  remember('theme', theme === 'system' ? undefined : theme)
  applyTheme(theme)
}

export function useTheme(): Theme {
  return toTheme(useRemembered('theme'))
}

export function themeAfter(theme: Theme): Theme {
  return themes[(themes.indexOf(theme) + 1) % themes.length]!
}
