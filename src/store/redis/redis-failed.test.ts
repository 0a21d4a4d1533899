import { expect, test } from 'vitest'
import { redisFailed } from './damage-script.ts'

test('a right that is missing at run time is told without the name of the user', () => {
  const said = "NOPERM User ada has no permissions to run the 'xadd' command"
  const { code, detail, cause } = redisFailed('cannot append to run r', 'redis://host:6379', new Error(said))
  expect(code).toBe('store-failed')
  expect(detail).toBe("redis://host:6379: NOPERM This user has no permissions to run the 'xadd' command")
  expect(String(cause)).not.toContain('ada')
})
