/** Builds the page into `dist/web`. Nothing is inlined: the Content-Security-Policy allows no inline script and no `data:` script. */
import { fileURLToPath } from 'node:url'
import react from '@vitejs/plugin-react'
import type { UserConfig } from 'vite'
import { writeLicenses } from '../scripts/web-licenses.ts'

export default {
  root: fileURLToPath(new URL('.', import.meta.url)),
  configFile: false,
  base: '/',
  logLevel: 'warn',
  plugins: [react(), writeLicenses()],
  worker: { format: 'es', rolldownOptions: { checks: { bundlerTimings: false } } },
  build: {
    outDir: fileURLToPath(new URL('../dist/web', import.meta.url)),
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2024',
    cssMinify: true,
    // How long plugins took is of no use to who installs.
    rolldownOptions: {
      checks: { bundlerTimings: false },
      output: {
        codeSplitting: {
          // What the chat and the columns side by side share would be named after any file of it.
          groups: [{ name: 'Conversation', test: /\/rooms\/chat\/[\w-]+\.tsx?$/u, minShareCount: 2 }],
          includeDependenciesRecursively: false,
        },
      },
    },
  },
} satisfies UserConfig & { configFile: false }
