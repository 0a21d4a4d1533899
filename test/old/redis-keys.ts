/**
 * All keys of a Redis as the commands that write them, one a line, as JSON. Any Redis or Valkey takes them; an RDB file or what `DUMP` says, only
 * one that is as new. Texts are bytes: each character is one.
 */
import { createClient, RESP_TYPES } from '@redis/client'

type Client = ReturnType<ReturnType<typeof open>['withTypeMapping']>
type Bytes = Buffer

const open = (url: string) => createClient({ url, RESP: 2 })

export async function writeKeys(url: string): Promise<string> {
  const client = open(url)
  await client.connect()
  try {
    const bytes = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }) as Client
    const keys = (await bytes.sendCommand(['KEYS', '*'])) as unknown as Bytes[]
    const lines: string[] = []
    for (const key of keys.sort(Buffer.compare))
      for (const command of await written(bytes, key)) lines.push(line(command))
    return `${lines.join('\n')}\n`
  } finally {
    client.destroy()
  }
}

export async function readKeys(url: string, text: string): Promise<void> {
  const client = open(url)
  await client.connect()
  try {
    const commands = text.trim().split('\n')
    await Promise.all(
      commands.map((each) => {
        const args = (JSON.parse(each) as string[]).map((arg) => Buffer.from(arg, 'latin1'))
        return client.sendCommand(args as never)
      }),
    )
  } finally {
    client.destroy()
  }
}

function line(command: readonly (string | Bytes)[]): string {
  return JSON.stringify(command.map((arg) => (typeof arg === 'string' ? arg : arg.toString('latin1'))))
}

async function written(client: Client, key: Bytes): Promise<(string | Bytes)[][]> {
  const ask = async (...args: (string | Bytes)[]) => (await client.sendCommand(args as never)) as unknown
  const type = String(await ask('TYPE', key))
  const commands: (string | Bytes)[][] = []
  if (type === 'string') commands.push(['SET', key, (await ask('GET', key)) as Bytes])
  else if (type === 'hash') commands.push(['HSET', key, ...((await ask('HGETALL', key)) as Bytes[])])
  else if (type === 'list') commands.push(['RPUSH', key, ...((await ask('LRANGE', key, '0', '-1')) as Bytes[])])
  else if (type === 'set') commands.push(['SADD', key, ...((await ask('SMEMBERS', key)) as Bytes[])])
  else if (type === 'zset') {
    const found = (await ask('ZRANGE', key, '0', '-1', 'WITHSCORES')) as Bytes[]
    const pairs = found.flatMap((_, i) => (i % 2 === 0 ? [found[i + 1]!, found[i]!] : []))
    commands.push(['ZADD', key, ...pairs])
  } else if (type === 'stream') {
    for (const [id, fields] of (await ask('XRANGE', key, '-', '+')) as [Bytes, Bytes[]][])
      commands.push(['XADD', key, id, ...fields])
  } else throw new Error(`no command is known for a ${type}`)
  const left = Number(await ask('PTTL', key))
  if (left > 0) commands.push(['PEXPIRE', key, String(left)])
  return commands
}
