/** No recording makes a route fail. The many are in `routes.all.test.ts`. */
import { describe, expect, test } from 'vitest'
import { tryRoutes } from './try-routes.ts'

describe('hostile recordings: routes', () => {
  test('what is imported reads back clean, and no route answers with a 5xx', async () => {
    expect(await tryRoutes(1, 25)).toBeGreaterThan(0)
  })
})
