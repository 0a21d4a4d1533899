import { defineConfig } from 'millrace'

export default defineConfig({ packs: [import('../millrace-pack-dify/index.ts')] })
