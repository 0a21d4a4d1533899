/** The contract of whom runs belong to: their rows, lists and forks. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { RunQuery, Store } from '../../part/log.ts'
import type { RunUser } from '../../part/principal.ts'
import { endEntry, exampleRun, startEntry } from '../example-run.contract.ts'
import { readAll } from './tools.contract.ts'

const ann: RunUser = { id: 'ann', name: 'Ann', roles: ['user'], claims: { plan: 'free' } }
const annOfAcme: RunUser = { id: 'ann', tenant: 'acme' }
const bob: RunUser = { id: 'bob', tenant: 'acme', key: 'ci' }

export function usersContract(current: () => Store): void {
  describe('users', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })
    const start = (run: string, user?: RunUser, part: Parameters<typeof startEntry>[1] = {}) =>
      store.log.append(run, 1, [startEntry(run, { ...part, ...(user && { user }) })])
    const ids = async (query?: RunQuery) => (await store.runs.list(query)).map(({ id }) => id).join(' ')
    const says = (content: string) => ({ input: { messages: [{ role: 'user', content }] } })

    test('a row says whom its run belongs to, whatever entries follow; empty texts are no one', async () => {
      const owners = async () => {
        const rows = await Promise.all(['a', 'b', 'c', 'd'].map((id) => store.runs.get(id)))
        return rows.map((row) => ['owner' in row!, row!.owner, 'tenant' in row!, row!.tenant])
      }
      await start('a', ann)
      await start('b', bob)
      await start('c')
      await start('d', { id: '', tenant: '' })
      const expected = [
        [true, 'ann', false, undefined],
        [true, 'bob', true, 'acme'],
        [false, undefined, false, undefined],
        [false, undefined, false, undefined],
      ]
      expect(await owners()).toEqual(expected)
      for (const id of ['a', 'b', 'c', 'd']) {
        await store.log.claim(id, 1)
        await store.log.append(id, 2, [endEntry(2)])
      }
      expect(await owners()).toEqual(expected)
      expect((await store.runs.list()).map(({ owner, tenant }) => [owner, tenant])).toEqual([
        [undefined, undefined],
        [undefined, undefined],
        ['bob', 'acme'],
        ['ann', undefined],
      ])
      expect((await readAll(store, 'a'))[0]).toMatchObject({ user: ann })
    })

    test('lists those of an owner or a tenant, with every other condition', async () => {
      await start('a1', ann, { threadId: 't', agent: 'one', ...says('blue whale') })
      await start('a2', ann, { threadId: 't', agent: 'two', ...says('grey whale') })
      await start('x1', annOfAcme, { threadId: 't', agent: 'one', ...says('blue whale') })
      await start('b1', bob, { threadId: 't', agent: 'one', ...says('blue sky') })
      await start('n1', undefined, { threadId: 't', agent: 'one', ...says('blue whale') })
      await store.log.append('a2', 1, [endEntry(2)])
      const cases: [RunQuery, string][] = [
        [{ owner: 'ann' }, 'x1 a2 a1'],
        [{ owner: 'ann', tenant: '' }, 'a2 a1'],
        [{ owner: 'ann', tenant: 'acme' }, 'x1'],
        [{ tenant: 'acme' }, 'b1 x1'],
        [{ tenant: '' }, 'n1 a2 a1'],
        [{ owner: '' }, 'n1'],
        [{ owner: '', tenant: '' }, 'n1'],
        [{ owner: '', tenant: 'acme' }, ''],
        [{ owner: 'nobody' }, ''],
        [{ owner: 'an', tenant: '' }, ''],
        [{ owner: 'ann', tenant: '', agent: 'one' }, 'a1'],
        [{ tenant: 'acme', agent: 'one' }, 'b1 x1'],
        [{ owner: 'ann', tenant: '', threadId: 't' }, 'a2 a1'],
        [{ owner: 'ann', tenant: '', status: 'completed' }, 'a2'],
        [{ owner: 'ann', tenant: '', status: ['completed', 'running'] }, 'a2 a1'],
        [{ tenant: 'acme', status: 'running' }, 'b1 x1'],
        [{ tenant: 'acme', status: 'completed' }, ''],
        [{ owner: 'ann', tenant: '', status: [] }, ''],
        [{ owner: 'ann', tenant: '', since: 1 }, 'a2 a1'],
        [{ owner: 'ann', tenant: '', idPrefix: 'a' }, 'a2 a1'],
        [{ owner: 'ann', tenant: '', idPrefix: 'x' }, ''],
        [{ owner: 'ann', tenant: '', q: 'whale' }, 'a2 a1'],
        [{ owner: 'ann', tenant: '', q: 'blue whale' }, 'a1'],
        [{ owner: 'ann', tenant: '', search: 'blue' }, 'a1'],
        [{ tenant: 'acme', search: 'blue' }, 'b1 x1'],
        [{ tenant: '', search: 'blue' }, 'n1 a1'],
        [{ owner: '', q: 'blue' }, 'n1'],
        [{ owner: 'ann', tenant: '', limit: 1 }, 'a2'],
        [{ owner: 'ann', tenant: '', limit: 1, before: 'a2' }, 'a1'],
        [{ owner: 'ann', before: 'x1' }, 'a2 a1'],
        [{ owner: 'ann', tenant: '', before: 'a2', search: 'whale' }, 'a1'],
        [{ tenant: 'acme', before: 'x1' }, ''],
      ]
      for (const [query, expected] of cases) expect(await ids(query), JSON.stringify(query)).toBe(expected)
    })

    test('a run of somebody else as `before` is refused as one that does not exist', async () => {
      await start('a', ann)
      await start('b', bob)
      await start('n')
      const refusal = (query: RunQuery) =>
        store.runs.list(query).then(
          () => 'listed',
          ({ code, status, message }) => ({ code, status, message: message.replace(` ${query.before} `, ' ID ') }),
        )
      for (const filter of [{ owner: 'ann', tenant: '' }, { owner: 'ann' }, { tenant: 'none' }]) {
        for (const words of [{}, { q: 'a' }, { search: 'a' }, { agent: 'echo' }, { threadId: 'thread-1' }]) {
          const query = { ...filter, ...words }
          const unknown = await refusal({ ...query, before: 'gone' })
          expect(unknown).toMatchObject({ code: 'unknown-run' })
          expect(await refusal({ ...query, before: 'b' }), JSON.stringify(query)).toEqual(unknown)
          expect(await refusal({ ...query, before: 'n', limit: 1 })).toEqual(unknown)
        }
      }
      expect(await refusal({ owner: 'ann', tenant: '', before: 'a' })).toBe('listed')
      expect(await refusal({ owner: '', before: 'n' })).toBe('listed')
    })

    test('names of owners and tenants may have any characters', async () => {
      const names = ['a:b', 'a', ':', '0:', 'x\u0000y', 'é', '%2F/@@', ' ', '💡', '__proto__']
      for (const [i, id] of names.entries()) {
        await start(`u${i}`, { id, tenant: names[(i + 1) % names.length]! })
        await start(`v${i}`, { id })
      }
      for (const [i, id] of names.entries()) {
        expect(await ids({ owner: id })).toBe(`v${i} u${i}`)
        expect(await ids({ owner: id, tenant: '' })).toBe(`v${i}`)
        expect(await ids({ owner: id, tenant: names[(i + 1) % names.length]! })).toBe(`u${i}`)
        expect(await ids({ tenant: names[(i + 1) % names.length]! })).toBe(`u${i}`)
        expect(await ids({ owner: id, tenant: names[(i + 2) % names.length]! })).toBe('')
      }
    })

    test('threads of the same name are deleted for themselves, also those of the longest ids', async (context) => {
      const { upkeep } = store
      if (upkeep === undefined) return context.skip('nothing is deleted here')
      const long = 'x'.repeat(2048 - '@@ann'.length)
      for (const name of ['1', long]) {
        const [mine, theirs] = [`${name}@@ann`, `${name}@@acme/bob`]
        await start(`of-ann${name.length}`, ann, { threadId: mine })
        await store.log.append(`of-ann${name.length}`, 1, [endEntry(2)])
        await start(`of-bob${name.length}`, bob, { threadId: theirs })
        for (const thread of [mine, theirs]) await store.log.post(`thread:${thread}`, 'turn:1', {})
        expect((await upkeep.expired(Infinity)).runs.map(({ id }) => id)).toEqual([`of-ann${name.length}`])
        expect(await ids({ threadId: mine })).toBe(`of-ann${name.length}`)
        expect(await upkeep.drop(`of-bob${name.length}`)).toBe(false)
        expect(await upkeep.drop(`of-ann${name.length}`)).toBe(true)
        expect(await ids({ threadId: mine })).toBe('')
        expect(await ids({ owner: 'ann', tenant: '' })).toBe('')
        expect(await ids({ threadId: theirs, owner: 'bob', tenant: 'acme' })).toBe(`of-bob${name.length}`)
        const posted = [mine, theirs].map((thread) => store.log.post(`thread:${thread}`, 'turn:1', {}))
        expect((await Promise.all(posted)).map(({ first }) => first)).toEqual([true, false])
      }
    })

    test('a fork belongs to who forked it, in a thread of its own, and not to the user of its source', async () => {
      const source = exampleRun('r').map((entry) => (entry.type === 'run-start' ? { ...entry, user: ann } : entry))
      await store.log.append('r', 1, source)
      await store.log.fork('r', 4, 'mine', undefined, ann)
      await store.log.fork('r', 4, 'theirs', 5, bob)
      await store.log.fork('r', 4, 'free')
      await store.log.fork('mine', 4, 'again', undefined, bob)
      const found = await Promise.all(
        ['mine', 'theirs', 'free', 'again'].map(async (id) => {
          const [start] = await readAll(store, id)
          const { threadId, owner, tenant } = (await store.runs.get(id))!
          const { user, threadId: recorded } = start as { user?: RunUser; threadId?: string }
          expect(recorded).toBe(threadId)
          return [id, user, threadId, owner, tenant]
        }),
      )
      expect(found).toEqual([
        ['mine', ann, 'thread_mine@@ann', 'ann', undefined],
        ['theirs', bob, 'thread_theirs@@acme/bob', 'bob', 'acme'],
        ['free', undefined, 'thread_free', undefined, undefined],
        ['again', bob, 'thread_again@@acme/bob', 'bob', 'acme'],
      ])
      expect(await ids({ owner: 'bob', tenant: 'acme' })).toBe('again theirs')
      expect(await ids({ owner: 'ann', tenant: '' })).toBe('mine r')
      expect(await ids({ owner: '' })).toBe('free')
    })

    test('the same fork for another user is another; for the same one, with other claims, it is the same', async () => {
      await store.log.append('r', 1, exampleRun('r'))
      await store.log.fork('r', 4, 'f', undefined, ann)
      await store.log.fork('r', 4, 'f', undefined, { id: 'ann', claims: { plan: 'paid' } })
      await store.log.fork('r', 4, 'free')
      await store.log.fork('r', 4, 'free', undefined, { id: '' })
      const refused = (run: string, user?: RunUser) =>
        expect(store.log.fork('r', 4, run, undefined, user)).rejects.toMatchObject({ code: 'run-exists' })
      await refused('f', bob)
      await refused('f', annOfAcme)
      await refused('f')
      await refused('free', ann)
      expect((await readAll(store, 'f'))[0]).toMatchObject({ user: ann })
    })
  })
}
