import { describe, expect, onTestFinished, test } from 'vitest'
import type { Principal } from '../../part/principal.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { RequestContext } from '../handler-context.ts'
import { deleteKey, getKeys, postKey, postRotation } from './keys.ts'

const admin: Principal = { id: 'root', roles: ['admin'], name: 'Root' }

function keysFor(principal: Principal = admin, store = memoryStore()) {
  onTestFinished(() => store.close())
  const agent = { id: 'helper' }
  const agents = { get: (id: string) => (id === 'helper' || id === 'alias' ? agent : undefined), list: () => [agent] }
  const runtime = { store, agents }
  const context = { runtime, server: { runtime }, principal, maxBodyBytes: 10_000 } as unknown as RequestContext
  const add = (body: object) =>
    postKey(
      context,
      new Request('http://h/api/keys', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    )
  const list = async () => ((await (await getKeys(context)).json()) as { keys: { name: string }[] }).keys
  return { context, store, add, list }
}

describe('/api/keys', () => {
  test('a key is added, rotated and revoked; its secret is shown when it is made and not again', async () => {
    const { context, add, list } = keysFor()
    const added = await add({
      name: 'ci',
      role: 'operator',
      tenant: 'acme',
      agents: ['alias'],
      limits: { runsPerMinute: 2 },
      expires: '2999-01-01',
    })
    expect(added.status).toBe(201)
    expect(added.headers.get('cache-control')).toBe('no-store')
    const { secret, ...key } = (await added.json()) as { secret: string }
    expect(secret).toMatch(/^mr_/u)
    expect(key).toMatchObject({ name: 'ci', role: 'operator', agents: ['helper'], by: { id: 'root', name: 'Root' } })
    expect(await list()).toEqual([key])
    const rotated = (await (await postRotation(context, 'ci')).json()) as { secret: string }
    expect(rotated.secret).not.toBe(secret)
    expect(await (await deleteKey(context, 'ci')).json()).toEqual({ revoked: 'ci' })
    const after = await list()
    expect(after).toHaveLength(2)
    for (const each of after) expect(each).toHaveProperty('revokedAt')
    expect(JSON.stringify(after)).not.toMatch(/mr_|digest/u)
  })

  test.each([
    [{ role: 'user' }, 'name must be'],
    [{ name: 'a b' }, 'The name of a key must be'],
    [{ name: 'a', role: 'root' }, 'role must be one of user, operator, admin'],
    [{ name: 'a', tenant: '' }, 'tenant must be'],
    [{ name: 'a', agents: 'helper' }, 'agents must be a list'],
    [{ name: 'a', agents: ['helpr'] }, 'there is no agent "helpr" (did you mean "helper"?)'],
    [{ name: 'a', expires: 'soon' }, 'expires must be a day'],
    [{ name: 'a', expires: 5 }, 'expires must be a day'],
    [{ name: 'a', expires: '2001-01-01' }, 'expires must be in the future'],
    [{ name: 'a', limits: { runsPerMinute: '3' } }, 'limits must be'],
    [{ name: 'a', rolle: 'user' }, 'unknown key "rolle" (did you mean "role"?)'],
  ])('%o is refused', async (body, message) => {
    const { add, list } = keysFor()
    await expect(add(body)).rejects.toThrow(message)
    expect(await list()).toEqual([])
  })

  test('an admin of a tenant has the keys of its tenant and sees no others', async () => {
    const all = keysFor()
    await all.add({ name: 'global', role: 'admin' })
    await all.add({ name: 'other', tenant: 'other' })
    const own = keysFor({ id: 'a', roles: ['admin'], tenant: 'acme' }, all.store)
    expect(((await (await own.add({ name: 'mine', role: 'admin' })).json()) as { tenant: string }).tenant).toBe('acme')
    await expect(own.add({ name: 'theirs', tenant: 'other' })).rejects.toMatchObject({ status: 403 })
    expect((await own.list()).map(({ name }) => name)).toEqual(['mine'])
    await expect(deleteKey(own.context, 'global')).rejects.toMatchObject({ code: 'unknown-key' })
    await expect(postRotation(own.context, 'other')).rejects.toMatchObject({ code: 'unknown-key' })
    expect(await all.list()).toHaveLength(3)
  })

  test('a key for some agents may not manage keys: another key would have all of them', async () => {
    const { context, add } = keysFor({ id: 'key:x', roles: ['admin'], agents: ['helper'] })
    await expect(add({ name: 'wide', role: 'admin' })).rejects.toMatchObject({ status: 403 })
    await expect(getKeys(context)).rejects.toMatchObject({ status: 403 })
    await expect(postRotation(context, 'any')).rejects.toMatchObject({ status: 403 })
  })
})
