/** A store over TLS, and what is said when there is none, or the wrong one. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { describeRedis, freshPrefix, startRedis, type RedisServer } from '../../../test/support/redis.ts'
import { writeTestCertificates } from '../../../test/support/test-certificates.ts'
import { delta, live, readAll } from '../contract/tools.contract.ts'
import { endEntry, startEntry } from '../example-run.contract.ts'
import { redisStore } from './redis-store.ts'

const dir = mkdtempSync(join(tmpdir(), 'millrace-tls-'))
const files = writeTestCertificates(dir)
afterAll(() => rmSync(dir, { recursive: true, force: true }))

const secret = 'tls-s3cret'
/** The user may do everything, with this password. */
const user = `default:${secret}@`
const query = (options: Record<string, string>) => new URLSearchParams(options).toString()

/** What the operator is told, and after how many ms. It never has the password. */
async function failure(url: string) {
  const began = performance.now()
  try {
    await (await redisStore(url)).close()
  } catch (error) {
    const { code, message, detail, cause } = error as Error & { code: string; detail?: string }
    expect(JSON.stringify([message, detail, String(cause)])).not.toContain(secret)
    return { code, message, ms: performance.now() - began }
  }
  throw new Error('it has connected')
}

/** Two stores: one writes, the other follows. */
async function works(url: string): Promise<void> {
  const [one, two] = await Promise.all([redisStore(url), redisStore(url)])
  try {
    const following = readAll(two, 'r', 0, live())
    expect(await one.log.append('r', 1, [startEntry('r'), delta(2)])).toBe('stored')
    expect(await one.log.append('r', 1, [endEntry(3)])).toBe('stored')
    expect(await following).toHaveLength(3)
    expect(await readAll(two, 'r')).toHaveLength(3)
  } finally {
    await Promise.all([one.close(), two.close()])
  }
}

describeRedis(
  'over TLS',
  (redis) => {
    const place = (options: Record<string, string> = { ca: files.ca }, host = 'localhost') =>
      `rediss://${user}${host}:${redis().tlsPort}?${query({ prefix: freshPrefix(), ...options })}`

    test('a store appends, reads and follows', () => works(place()))

    test('an authority of your own is known by the URL or by NODE_EXTRA_CA_CERTS; another one is refused, with the cure', async () => {
      const unknown = await failure(place({}))
      expect(unknown).toMatchObject({
        code: 'store-failed',
        message: expect.stringMatching(/cannot trust.*NODE_EXTRA_CA_CERTS=.*\?ca=/u),
      })
      const other = await failure(place({ ca: files.clientCert }))
      expect(other.message).toContain('its certificate is not of the authority in ?ca=')
      expect(Math.max(unknown.ms, other.ms)).toBeLessThan(4000)
      const code = `const { redisStore } = await import(${JSON.stringify(pathToFileURL(join(import.meta.dirname, 'redis-store.ts')).href)})
        const store = await redisStore(process.argv[1])
        console.log(store.durable)
        await store.close()`
      const env = { ...process.env, NODE_EXTRA_CA_CERTS: files.ca }
      const child = spawnSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', code, place({})], {
        env,
        encoding: 'utf8',
      })
      expect([child.stdout, child.stderr]).toEqual(['true\n', ''])
    })

    test('a certificate of another host is refused', async () => {
      const { code, message, ms } = await failure(place(undefined, '127.0.0.1'))
      expect([code, message]).toEqual([
        'store-failed',
        expect.stringContaining('its certificate is for another host than 127.0.0.1'),
      ])
      expect(ms).toBeLessThan(4000)
    })

    test('redis:// where TLS is spoken, and rediss:// where it is not, are told at once', async () => {
      const [plain, secure, several] = await Promise.all([
        failure(`redis://${user}localhost:${redis().tlsPort}`),
        failure(`rediss://${user}localhost:${redis().port}?${query({ ca: files.ca })}`),
        failure(`redis://${user}localhost:${redis().tlsPort},localhost:${redis().tlsPort}`),
      ])
      for (const { code, message } of [plain, several])
        expect([code, message]).toEqual(['store-failed', expect.stringMatching(/speaks TLS: write rediss:\/\/$/u)])
      expect([secure.code, secure.message]).toEqual([
        'store-failed',
        expect.stringMatching(/does not speak TLS: write redis:\/\/$/u),
      ])
      for (const { ms } of [plain, secure, several]) expect(ms).toBeLessThan(4000)
    })

    test('a wrong password is refused there, too', async () => {
      await redis().command('ACL', 'SETUSER', 'ada', 'on', '>other', '~*', '&*', '+@all')
      const { message, ms } = await failure(place().replace('default', 'ada'))
      expect(message).toContain('check user and password')
      expect(ms).toBeLessThan(4000)
    })
  },
  { tls: 'server' },
)

describeRedis(
  'with certificates of clients',
  (redis) => {
    const place = (options: Record<string, string>) =>
      `rediss://localhost:${redis().tlsPort}?${query({ prefix: freshPrefix(), ca: files.ca, ...options })}`

    test('one is taken from the URL; without it, the error says so', async () => {
      await works(place({ cert: files.clientCert, key: files.clientKey }))
      const { code, message, ms } = await failure(place({}))
      expect([code, message]).toEqual(['store-failed', expect.stringContaining('?cert=/path/client.pem&key=')])
      expect(ms).toBeLessThan(4000)
    })

    test('files that cannot be used are told by the name of their option', async () => {
      const text = join(dir, 'text.pem')
      writeFileSync(text, 'hello')
      const [missing, wrong, mismatch] = await Promise.all([
        failure(place({ ca: join(dir, 'nothing.pem') })),
        failure(place({ ca: text })),
        failure(place({ cert: files.clientCert, key: files.serverKey })),
      ])
      expect(missing).toMatchObject({
        code: 'bad-config',
        message: expect.stringMatching(/\?ca=.*nothing\.pem cannot be read: ENOENT/u),
      })
      expect(wrong).toMatchObject({
        code: 'bad-config',
        message: expect.stringMatching(/\?ca=.*text\.pem is no PEM file/u),
      })
      expect(mismatch).toMatchObject({
        code: 'bad-config',
        message: expect.stringMatching(/\?cert= and \?key= cannot be used/u),
      })
    })
  },
  { tls: 'mutual' },
)

describe('a cluster over TLS', () => {
  let node: RedisServer
  describeRedis('whose nodes announce the names of their certificates', () => {
    beforeAll(async () => {
      const names = ['--cluster-announce-hostname', 'localhost', '--cluster-preferred-endpoint-type', 'hostname']
      const flags = ['--cluster-enabled', 'yes', '--tls-cluster', 'yes', '--cluster-announce-ip', '127.0.0.1', ...names]
      node = await startRedis({ tls: 'server', flags: flags })
      await node.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
      await vi.waitFor(async () => expect(await node.command('CLUSTER', 'INFO')).toContain('cluster_state:ok'), 10_000)
    })
    afterAll(() => node.close())

    test('works, by one of its nodes or by a list', async () => {
      const options = query({ ca: files.ca, prefix: freshPrefix() })
      const place = `localhost:${node.tlsPort}`
      await works(`rediss://${place}?${options}`)
      await works(`rediss://${place},${place}?${options}2`)
    })

    test('and those that do not are refused, with the cure', async () => {
      await node.command('CONFIG', 'SET', 'cluster-preferred-endpoint-type', 'ip')
      const { message, ms } = await failure(`rediss://localhost:${node.tlsPort}?${query({ ca: files.ca })}`)
      expect(message).toContain('cluster-announce-hostname')
      expect(ms).toBeLessThan(4000)
    })
  })
})
