/** `millrace keys` over a data folder, and over a server with the routes of `/api/keys`. */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { RequestContext } from '../../src/server/handler-context.ts'
import { createNodeListener } from '../../src/server/http/node-listener.ts'
import { createApp } from '../../src/server/http/router.ts'
import { createRoutes } from '../../src/server/http/routes.ts'
import { mountKeys } from '../../src/server/routes/keys.ts'
import { errorResponse } from '../../src/delivery/http-error.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
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

test('over a server, its routes are asked', async () => {
  const store = memoryStore()
  const runtime = {
    store,
    agents: { get: (id: string) => (id === 'a' ? { id } : undefined), list: () => [{ id: 'a' }] },
  }
  const context = {
    runtime,
    server: { runtime },
    principal: { id: '', roles: ['admin'] },
    maxBodyBytes: 1000,
    audit: () => undefined,
  }
  const app = createApp()
  app.onError((error) => errorResponse(error))
  mountKeys(createRoutes(app))
  const env = { context: context as unknown as RequestContext }
  const handler = async (request: Request) => app.fetch(request, env)
  const server = createServer(createNodeListener(handler, () => undefined))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await store.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const cwd = folder()
  const on = (...args: string[]) => ran(cwd, ...args, '--server', url)
  const added = await on('add', 'ci', '--role', 'operator', '--agents', 'a', '--expires', '90d')
  expect(added).toMatchObject({ code: 0, out: expect.stringMatching(/^mr_[\w-]{43}\n$/u) as string })
  expect(await on('add', 'ci')).toMatchObject({
    code: 1,
    err: expect.stringContaining('There is a key "ci"') as string,
  })
  expect((await on('rotate', 'ci')).out).toMatch(/^mr_/u)
  expect((await on('add', 'x', '--agents', 'b')).err).toContain('there is no agent "b"')
  expect(await on('revoke', 'ic')).toMatchObject({
    code: 2,
    err: expect.stringContaining('did you mean "ci"?') as string,
  })
  expect((await on('revoke', 'ci')).code).toBe(0)
  const listed = JSON.parse((await on('list', '--json')).out) as { name: string }[]
  expect(listed).toHaveLength(2)
  expect(listed[0]).toMatchObject({
    name: 'ci',
    role: 'operator',
    agents: ['a'],
    revokedAt: expect.any(Number) as number,
  })
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
