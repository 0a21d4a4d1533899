/** No recording makes a route fail. The many are in `routes.all.test.ts`. */
import { expect, test } from 'vitest'
import { tryRoutes } from './try-routes.ts'

test('what is imported reads back clean, and no route answers with a 5xx', async () => {
  expect(await tryRoutes(1, 25)).toBeGreaterThan(0)
})
