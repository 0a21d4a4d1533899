/** `GET /metrics`: what Prometheus reads. */
import { setTimeout as turns } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createProcessMetrics } from '../../src/server/fleet-metrics.ts'
import { parse } from './metrics-text.ts'

describe('metrics', () => {
  test('a blocked event loop is seen', async () => {
    const metrics = createProcessMetrics(() => 0)
    onTestFinished(() => void metrics.close())
    const longest = () => parse(metrics.text()).get('nodejs_eventloop_lag_max_seconds')!
    expect(longest()).toBe(0)
    await vi.waitUntil(async () => {
      // Its timer must have begun, and must fire after the block.
      await turns(60)
      for (const end = performance.now() + 150; performance.now() < end;);
      await turns(60)
      return longest() > 0.1
    })
  })
})
