/** `millrace keys`: the keys with which programs ask a server. */
import { Argument, Option, type Command } from 'commander'
import { MillraceError } from '../../part/error.ts'
import { roles, type Role } from '../../part/principal.ts'
import { endOf, endWords } from '../../project/access-values.ts'
import { ageOf } from '../../record/policy.ts'
import type { StoredKey } from '../../server/access/key-book.ts'
import type { ConnectionFlags } from '../connection.ts'
import type { KeyConnection, MadeKey } from '../connection/keys.ts'
import type { CommandContext } from '../context.ts'
import { formatTime } from '../terminal/format.ts'
import { forStream, paint, printable } from '../terminal/output.ts'
import { formatTable } from '../terminal/table.ts'
import { addConnectionOptions, choice, examples, unknownWord } from './options.ts'

interface KeysFlags extends ConnectionFlags {
  role?: Role
  tenant?: string
  agents?: string
  expires?: string
  server?: string
  json?: boolean
}

const verbs = ['add', 'list', 'revoke', 'rotate'] as const
type Verb = (typeof verbs)[number]

export function addKeysCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('keys')
    .summary('Add, list, revoke or rotate the keys of programs')
    .description(
      'The keys with which programs ask a server. The secret of a key is printed once, when it is added or rotated; the store has only its hash.',
    )
    .addArgument(
      new Argument('<action>', 'add, list, revoke or rotate').argParser((word: string) => {
        if (!(verbs as readonly string[]).includes(word)) throw unknownWord(word, verbs)
        return word
      }),
    )
    .argument('[name]', 'Name of the key, for all but list')
    .addOption(choice('--role <role>', 'With add: what it may do (default: user)', roles))
    .option('--tenant <tenant>', 'With add: the tenant that it belongs to')
    .option('--agents <ids>', 'With add: the only agents that it may use, separated by commas')
    .option('--expires <when>', 'With add: its last day, such as 2027-06-30, or for how long, such as 90d')
    .option('--json', 'Print JSON')
    .addOption(new Option('--server <url>', 'The same as --url'))
    .addHelpText(
      'after',
      `
A key that is revoked or rotated ends at once, with its open streams, on all
servers of the store.
${examples(
  'millrace keys add ci --role operator --agents code-review --expires 90d',
  'CI_KEY=$(millrace keys add ci --url https://agents.example)',
  'millrace keys list',
  'millrace keys rotate ci',
  'millrace keys revoke ci',
)}`,
    )
    .action((verb: Verb, name: string | undefined, flags: KeysFlags) => keys(context, verb, name, flags))
  addConnectionOptions(command)
}

async function keys(
  context: CommandContext,
  verb: Verb,
  name: string | undefined,
  { role, tenant, agents, expires, server, json = false, ...where }: KeysFlags,
): Promise<void> {
  const settings = { role, tenant, agents, expires }
  for (const [flag, value] of Object.entries(settings)) {
    if (value !== undefined && verb !== 'add') throw new MillraceError('usage', `--${flag} is for millrace keys add.`)
  }
  if (verb === 'list' && name !== undefined) throw new MillraceError('usage', 'millrace keys list takes no name.')
  if (verb !== 'list' && name === undefined)
    throw new MillraceError('usage', `Which key? Pass its name: millrace keys ${verb} <name>`)
  const expiresAt = expires === undefined ? undefined : endIn(expires)
  const named = agents?.split(',').map((each) => each.trim())
  if (named?.includes('') === true) throw new MillraceError('usage', '--agents must be ids, separated by commas.')
  const { openKeys } = await import('../connection/keys.ts')
  const connection = await openKeys(context, { ...where, ...(server !== undefined && { url: server }) })
  try {
    await act(context, connection, {
      verb,
      name: name ?? '',
      json,
      key: { role: role ?? 'user', tenant, agents: named, expiresAt },
    })
  } finally {
    await connection.close()
  }
}

interface Wanted {
  verb: Verb
  name: string
  json: boolean
  key: { role: Role; tenant: string | undefined; agents: string[] | undefined; expiresAt: number | undefined }
}

async function act(
  context: CommandContext,
  connection: KeyConnection,
  { verb, name, json, key }: Wanted,
): Promise<void> {
  const { stdout, stderr } = context
  const print = (value: object) => stdout.write(`${forStream(JSON.stringify(value), stdout)}\n`)
  switch (verb) {
    case 'list': {
      const found = await connection.list()
      if (json) print(found)
      else if (found.length === 0) stderr.write('no keys; millrace keys add makes one\n')
      else stdout.write(`${table(context, found)}\n`)
      return
    }
    case 'revoke':
      await connection.revoke(name)
      if (json) print({ revoked: name })
      else stderr.write(printable(`revoked key ${name}\n`))
      return
    case 'add':
      return show(await connection.add({ name, ...key }))
    case 'rotate':
      return show(await connection.rotate(name))
  }

  function show(made: MadeKey): void {
    if (json) return void print(made)
    const what = verb === 'add' ? 'added key' : 'rotated key'
    stderr.write(printable(`${what} ${made.name} (${made.role}); its secret is shown only here\n`))
    stdout.write(`${made.secret}\n`)
  }
}

/** Epoch ms. */
function endIn(text: string): number {
  const age = /^\d+$/u.test(text) ? undefined : ageOf(text)
  const end = age === undefined ? endOf(text) : Date.now() + age
  if (end === undefined)
    throw new MillraceError('usage', `--expires must be a duration such as "90d", or ${endWords}, not "${text}".`)
  if (end <= Date.now()) throw new MillraceError('usage', `--expires must be in the future, not "${text}".`)
  return end
}

const head = ['NAME', 'ROLE', 'TENANT', 'AGENTS', 'ADDED', 'EXPIRES', 'STATUS']

function table(context: CommandContext, found: StoredKey[]): string {
  const rows = found.map((key) => [
    key.name,
    key.role,
    key.tenant ?? '',
    key.agents?.join(',') ?? 'all',
    formatTime(key.createdAt),
    key.expiresAt === undefined ? 'never' : formatTime(key.expiresAt),
    statusOf(key),
  ])
  return formatTable(head, rows, { style: (cell, _column, row) => (row < 0 ? paint(context, 'bold', cell) : cell) })
}

function statusOf({ revokedAt, expiresAt }: StoredKey): string {
  if (revokedAt !== undefined) return 'revoked'
  return (expiresAt ?? Infinity) <= Date.now() ? 'expired' : 'active'
}
