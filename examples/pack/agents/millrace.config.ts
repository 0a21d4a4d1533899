import { defineConfig } from 'millrace'

/** Awaited when the config is loaded. A published pack is named by its package: `import('millrace-pack-weather')`. */
export default defineConfig({
  packs: [import('../millrace-pack-weather/index.ts')],
})
