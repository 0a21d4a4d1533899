/** `millrace keys` over a data folder. Over a server, it asks the routes of `/api/keys`. */
import { expect, test } from 'vitest'
import { createHash } from 'node:crypto'
import { listKeys, openKeyBook } from '../../src/server/access/key-book.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { folder, millrace } from '../support/cli.ts'

async function ran(cwd: string, ...args: string[]) {
  const command = millrace(['keys', ...args], { cwd })
  const code = await command.exit
  return { code, out: command.out, err: command.err }
}

test('a key is added, listed, rotated and revoked in a data folder that has no runs yet', async () => {
  const cwd = folder()
  const added = await ran(
    cwd,
    'add',
    'ci',
    '--role',
    'operator',
    '--tenant',
    'acme',
    '--agents',
    'a,b',
    '--expires',
    '2999-01-01',
  )
  expect(added).toMatchObject({ code: 0, out: expect.stringMatching(/^mr_[\w-]{43}\n$/u) as string })
  expect(added.err).toBe('added key ci (operator); its secret is shown only here\n')
  await ran(cwd, 'add', 'a-longer-name')
  const { out } = await ran(cwd, 'list')
  const lines = out.trimEnd().split('\n')
  expect(lines[0]).toMatch(/^NAME +ROLE +TENANT +AGENTS +ADDED +EXPIRES +STATUS$/u)
  const column = lines[0]!.indexOf('ROLE')
  expect(lines.slice(1).map((line) => line.slice(column).split(' ')[0])).toEqual(['user', 'operator'])
  expect(lines[2]).toMatch(/^ci .*acme +a,b .*2999-01-01 23:59:59 +active$/u)

  const rotated = await ran(cwd, 'rotate', 'ci', '--json')
  const key = JSON.parse(rotated.out) as { secret: string }
  expect(key).toMatchObject({ name: 'ci', role: 'operator', agents: ['a', 'b'] })
  const store = sqliteStore(`${cwd}/.millrace/millrace.db`)
  const book = openKeyBook(store.log, { onError: () => undefined })
  await book.ready
  const digest = (secret: string) => createHash('sha256').update(secret).digest('hex')
  expect(book.find(digest(key.secret), 0)).toMatchObject({ id: 'key:ci', tenant: 'acme' })
  expect(book.find(digest(added.out.trim()), 0)).toBeUndefined()
  book.close()
  expect(await ran(cwd, 'revoke', 'ci')).toMatchObject({ code: 0, err: 'revoked key ci\n' })
  expect((await listKeys(store.log)).filter(({ revokedAt }) => revokedAt === undefined)).toHaveLength(1)
  await store.close()
})

test.each([
  [['add'], /Which key\? Pass its name: millrace keys add <name>/u],
  [['remove', 'ci'], /Known: add, list, revoke, rotate/u],
  [['lst'], /Did you mean list\?/u],
  [['list', 'ci'], /millrace keys list takes no name/u],
  [['revoke', 'ci', '--role', 'admin'], /--role is for millrace keys add/u],
  [['add', 'ci', '--role', 'operater'], /Did you mean operator\?/u],
  [['add', 'ci', '--expires', 'soon'], /--expires must be a duration such as "90d", or a day/u],
  [['add', 'ci', '--expires', '2001-01-01'], /--expires must be in the future/u],
  [['add', 'ci', '--agents', 'a,,b'], /--agents must be ids/u],
  [['revoke', 'nobody'], /There is no key "nobody"/u],
  [['add', 'a b'], /The name of a key must be/u],
])('millrace keys %j is refused', async (args, message) => {
  const { code, err } = await ran(folder(), ...args)
  expect(err).toMatch(message)
  expect(code).toBe(2)
})
