import type { NextConfig } from 'next'

export default {
  // Agents are read at runtime, so platforms that deploy only traced files must be told to include them.
  outputFileTracingIncludes: { '/api/**': ['./src/agents/**'] },
} satisfies NextConfig
