import { defineConfig } from 'millrace'

/** Packs are imported when the config is loaded. Import a published pack by its package name: `import('millrace-pack-weather')`. */
export default defineConfig({
  packs: [import('../millrace-pack-weather/index.ts')],
})
