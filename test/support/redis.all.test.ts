import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeRedis, describeRedisCluster, freshPrefix, startRedis } from './redis.ts'

describeRedis('a server for tests', (redis) => {
  test('takes commands, and says what it refuses', async () => {
    const key = `${freshPrefix()}:a`
    expect(await redis().command('SET', key, 'ü\r\nb')).toBe('+OK')
    expect(await redis().command('GET', key)).toBe('$5\r\nü\r\nb')
    await expect(redis().command('NOPE')).rejects.toThrow(/unknown command/u)
  })

  test('with an append-only file, what was answered outlives a kill; frozen, it answers nothing', async () => {
    const server = await startRedis({ aof: true })
    try {
      await server.command('SET', 'a', '1')
      await server.kill()
      await expect(server.command('PING')).rejects.toThrow(/ECONNREFUSED/u)
      await server.restart()
      expect(await server.command('GET', 'a')).toBe('$1\r\n1')
      server.freeze()
      const order: string[] = []
      const answer = server.command('PING').then(() => order.push('answered'))
      await Promise.race([answer, new Promise((done) => setTimeout(done, 50))])
      order.push('thawed')
      server.thaw()
      await answer
      expect(order).toEqual(['thawed', 'answered'])
    } finally {
      await server.close()
    }
  })

  test('goes with the process that started it, even when that is killed', async () => {
    const script = `import { startRedis } from ${JSON.stringify(join(import.meta.dirname, 'redis-server.ts'))}
      const { port, dir } = await startRedis()
      process.stdout.write([port, dir].join(' '))
      setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [text] = (await once(child.stdout, 'data')) as [Buffer]
    const [port, dir] = String(text).split(' ') as [string, string]
    const connected = async () => {
      const socket = connect(Number(port), '127.0.0.1')
      const isConnected = await once(socket, 'connect').then(
        () => true,
        () => false,
      )
      socket.destroy()
      return isConnected
    }
    expect(await connected()).toBe(true)
    child.kill('SIGKILL')
    await expect.poll(connected).toBe(false)
    await expect.poll(() => existsSync(dir)).toBe(false)
  })
})

describeRedisCluster('a cluster for tests', (cluster) => {
  test('has three nodes and all slots', async () => {
    for (const node of cluster().nodes) {
      const info = await node.command('CLUSTER', 'INFO')
      expect(info).toContain('cluster_slots_ok:16384')
    }
    const replies = await Promise.allSettled(cluster().nodes.map((node) => node.command('SET', 'a', '1')))
    expect(replies.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })
})
