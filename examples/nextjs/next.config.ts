import type { NextConfig } from 'next'

export default {
  // Agents are read while the server runs: platforms that copy only traced files have to be told of them.
  outputFileTracingIncludes: { '/api/**': ['./src/agents/**'] },
} satisfies NextConfig
