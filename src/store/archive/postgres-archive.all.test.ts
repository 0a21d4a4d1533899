/** An archive in Postgres, and in nothing that only looks like it. */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { describePostgres } from '../../../test/support/postgres.ts'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import { startRedisProxy } from '../../../test/support/redis-proxy.ts'
import type { MillraceError } from '../../part/error.ts'
import { openStore } from '../../project/open-store.ts'
import { collect, readAll } from '../contract/tools.contract.ts'
import { exampleRun } from '../example-run.contract.ts'
import { archiveContract, put, rowOf, runOf } from './archive.contract.ts'
import { openArchive } from './archive.ts'
import { postgresArchive } from './postgres-archive.ts'
import { withoutPassword } from './postgres-url.ts'

describePostgres('an archive in Postgres', (postgres) => {
  archiveContract(() => postgres().freshUrl())

  const failure = async (url: string) => {
    const archive = openArchive(url)
    const error = await put(archive, 'r').then(
      () => undefined,
      (fault: unknown) => fault as MillraceError,
    )
    await archive.close()
    // As a log shows it.
    expect(inspect(error, { depth: 9 })).not.toMatch(/s3cret|%2Fword/u)
    expect(error!.message).not.toContain('127.0.0.1')
    return error!
  }

  test('has one table, which SQL can read; any other layout is refused', async () => {
    const url = await postgres().freshUrl()
    const name = new URL(url).pathname.slice(1)
    const archive = openArchive(url)
    await put(archive, 'r')
    await put(archive, 'long', exampleRun('long', 20_000), 100)
    expect(postgres().sql('\\d', name)).toMatch(/^public\|millrace_archive\|table\|ada$/u)
    const counts = postgres().sql('SELECT run, count(*) FROM millrace_archive GROUP BY run ORDER BY run', name)
    expect(counts).toMatch(/^long\|(?:[5-9]|1\d)\nr\|1$/u)
    const lines = postgres().sql("SELECT entries FROM millrace_archive WHERE run = 'r'", name).split('\n')
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(runOf('r'))
    await archive.close()
    postgres().sql("COMMENT ON TABLE millrace_archive IS 'Millrace archive, layout 2'", name)
    expect(await failure(url)).toMatchObject({ code: 'store-version' })
  })

  test('one of several concurrent starts creates the table; a user needs only the right to write', async () => {
    const url = await postgres().freshUrl()
    const name = new URL(url).pathname.slice(1)
    const archives = Array.from({ length: 6 }, () => openArchive(url))
    await Promise.all(archives.map((archive, i) => put(archive, `r${i}`)))
    await Promise.all(archives.map((archive) => archive.close()))
    postgres().sql(
      "CREATE ROLE bob LOGIN PASSWORD 's3cret'; GRANT SELECT, INSERT, DELETE ON millrace_archive TO bob",
      name,
    )
    const archive = openArchive(url.replace('ada:s3cret%2Fword', 'bob:s3cret'))
    expect(await collect(archive.read('r3', await put(archive, 'r3')))).toEqual(runOf('r3'))
    await archive.remove('r3', 'postgres')
    await archive.close()
  })

  test('errors never contain the password: refused, unreachable, no database, a broken connection', async () => {
    const url = await postgres().freshUrl()
    const detail = (text: string) => ({ code: 'store-failed', detail: expect.stringContaining(text) })
    expect(await failure(url.replace('word@', 'wrong@'))).toMatchObject(detail('password authentication failed'))
    expect(await failure(`${url}?password=s3cret-too`)).toMatchObject(detail('password authentication failed'))
    expect(await failure(url.replace(/:\d+\/.*/u, ':1/nowhere'))).toMatchObject(detail('ECONNREFUSED'))
    expect(await failure(url.replace(/\/\w+$/u, '/nowhere'))).toMatchObject(detail('does not exist'))
    const archive = openArchive(url)
    async function* broken() {
      yield runOf('r').slice(0, 4)
      postgres().sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'millrace'")
      yield runOf('r').slice(4)
    }
    await expect(archive.put(rowOf(runOf('r'), 'r'), broken())).rejects.toMatchObject({ code: 'store-failed' })
    expect(await collect(archive.read('r', await put(archive, 'r')))).toEqual(runOf('r'))
    await archive.close()
  })

  test('a Postgres that stops in the middle is given up, and the next one is asked anew', async () => {
    const url = await postgres().freshUrl()
    const proxy = await startRedisProxy(postgres().port)
    onTestFinished(() => proxy.close())
    const archive = postgresArchive(url.replace(/:\d+\//u, `:${new URL(proxy.url).port}/`), { timeoutMs: 300 })
    const place = await put(archive, 'r')
    proxy.freeze()
    const silent = { code: 'store-failed', detail: expect.stringContaining('no answer within 300 ms') }
    await expect(collect(archive.read('r', place))).rejects.toMatchObject(silent)
    proxy.allow()
    expect(await collect(archive.read('r', place))).toEqual(runOf('r'))
    await archive.close()
  })

  test('TLS is as sslmode and sslrootcert of the address say', async () => {
    const url = await postgres().freshUrl()
    const local = url.replace('127.0.0.1', 'localhost')
    const archive = openArchive(`${local}?sslmode=verify-full&sslrootcert=${postgres().ca}`)
    await put(archive, 'r')
    const uses =
      "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'millrace'"
    expect(Number(postgres().sql(uses))).toBe(1)
    await archive.close()
    const other = `${url}?sslmode=verify-full&sslrootcert=${postgres().ca}`
    expect(await failure(other)).toMatchObject({
      detail: expect.stringContaining("does not match certificate's altnames"),
    })
    expect(await failure(`${local}?sslmode=verify-full`)).toMatchObject({
      detail: expect.stringMatching(/certificate/u),
    })
  })
})

describePostgres('with a Postgres', (postgres) => {
  describeRedis('a store in Redis', (redis) => {
    test('moves runs to the archive, where other instances read them; a deletion by one also deletes them there', async () => {
      const place = {
        store: `${redis().url}?prefix=${freshPrefix()}`,
        data: 'none',
        archive: await postgres().freshUrl(),
      }
      const [store, other] = await Promise.all([openStore(place), openStore({ ...place, joins: false })])
      try {
        const entries = exampleRun('r', 500)
        await store.log.append('r', 1, entries)
        expect(await store.upkeep!.archive!('r')).toBe(true)
        expect(await readAll(other, 'r')).toEqual(entries)
        expect(await readAll(other, 'r', 250)).toEqual(entries.slice(250))
        expect(await other.upkeep!.drop('r')).toBe(true)
        expect(postgres().sql('SELECT count(*) FROM millrace_archive', new URL(place.archive).pathname.slice(1))).toBe(
          '0',
        )
      } finally {
        await Promise.all([store.close(), other.close()])
      }
    })
  })
})

test('a Postgres that accepts and says nothing is given up', async () => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => void sockets.add(socket.on('error', () => undefined))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const archive = postgresArchive(`postgres://ada:s3cret@127.0.0.1:${port}/db`, { timeoutMs: 100 })
  await expect(collect(archive.read('r', 'postgres'))).rejects.toMatchObject({
    code: 'store-failed',
    status: 503,
    detail: expect.stringContaining('no answer within 100 ms'),
  })
  expect(sockets.size).toBe(1)
  await archive.close()
})

describe('an address', () => {
  test.each([
    ['postgres://u:s3cret/word@host/db', 'escape @, /, ?'],
    ['postgres://u:s3cret?word@host/db', 'escape @, /, ?'],
    ['postgres://u:s3cret@host:port/db', 'postgres://user:password@host:5432/database'],
    ['postgresql://u:s3cret@host /db', 'not an address of Postgres'],
    [
      'mysql://u:s3cret@host/db',
      'there is no archive for mysql://. Write a folder, a file that ends in .db, or postgres://',
    ],
    ['s3://s3cret/folder', 'there is no archive for s3://'],
  ])('%s is refused, with a cure and without any part that may be a password', (url, words) => {
    let message = ''
    try {
      openArchive(url)
    } catch (error) {
      expect(error).toMatchObject({ code: 'bad-config' })
      message = (error as Error).message
    }
    expect(message).toContain(words)
    expect(message).not.toContain('s3cret')
  })

  test('the password is removed from every message', () => {
    const said = 'no s3cret/word, no s3cret%2Fword, no other'
    expect(withoutPassword(said, 'postgres://u:s3cret%2Fword@host/db?password=other')).toBe('no …, no …, no …')
  })

  test('without the package the error says how to install it, before a server takes runs', async () => {
    vi.doMock('pg', () => {
      throw new Error('Cannot find package')
    })
    onTestFinished(() => void vi.doUnmock('pg'))
    vi.resetModules()
    const { openStore } = await import('../../project/open-store.ts')
    const place = { store: 'redis://127.0.0.1:1', data: 'none', archive: 'postgres://u:s3cret@127.0.0.1:1/db' }
    const message = 'an archive in Postgres needs a package: npm install pg'
    await expect(openStore(place)).rejects.toMatchObject({ code: 'missing-package', message })
  })
})
