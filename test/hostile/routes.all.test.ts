import { describe, expect, test } from 'vitest'
import { tryRoutes } from './try-routes.ts'

describe('hostile recordings: routes', () => {
  test('200 imported recordings through every route', { timeout: 300_000 }, async () => {
    expect(await tryRoutes(5000, 1400)).toBeGreaterThan(200)
  })
})
