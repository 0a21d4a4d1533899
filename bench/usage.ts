/** Loaded into a server (`--import`) on systems without `/proc`. Reports the CPU and memory use of its process. */
import { answerCalls } from './calls.ts'
import type { Usage } from './meter.ts'

answerCalls({
  usage(): Usage {
    const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
    return { cpu: (userCPUTime + systemCPUTime) / 1e6, rss: process.memoryUsage.rss(), peak: maxRSS * 1024 }
  },
})
