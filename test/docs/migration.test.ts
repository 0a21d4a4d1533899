/** docs/migration says where the names of other projects went: every name that it gives as ours exists. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createContext } from '../support/command-context.ts'
import { createProgram } from '../../src/cli/program.ts'
import { createRuntime } from '../../src/project/create-runtime.ts'
import { agentJsonSchema } from '../../src/pipeline/agent-schema.ts'
import { builtinSteps } from '../../src/pipeline/names.ts'
import { llmConfig } from '../../src/pipeline/steps/llm.ts'
import { createHandler } from '../../src/server/handler.ts'
import { documents, readDocument } from './documents.ts'

const rows = documents
  .filter((name) => name.startsWith('docs/migration/') && name !== 'docs/migration/README.md')
  .flatMap((name) => readDocument(name).split('\n'))
  .filter((line) => line.startsWith('| ') && !line.startsWith('| there'))
  .map(
    (line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()) as [string, string, string],
  )

/** `Name` (`millrace/door`) → the names of one cell, each with its door; what says no door is the main one's. */
const ours = rows.flatMap(([, cell]) => {
  const found: { what: string; door: string }[] = []
  for (const [, what, door] of cell.matchAll(/`([^`]+)`(?: \(`millrace\/(\w+)`\))?/gu)) {
    found.push({ what: what!, door: door ?? 'index' })
  }
  // A door behind the last of several names is that of all before it that have none.
  for (let i = found.length - 2; i >= 0; i--) {
    const [one, next] = [found[i]!, found[i + 1]!]
    if (one.door === 'index' && isExport(one.what) && !exported('index').has(one.what)) one.door = next.door
  }
  return found
})

function isExport(what: string): boolean {
  return /^\w+$/u.test(what)
}

/** What a door's source lets out by name, types included. */
function exported(door: string): Set<string> {
  const read = (path: string) => readFileSync(resolve('src', path), 'utf8')
  const text = read(`${door}.ts`)
  const names = [...text.matchAll(/export (?:type )?\{([^}]*)\}/gu)].flatMap(([, list]) =>
    list!.split(',').map((name) => name.trim().replace(/^type /u, '')),
  )
  const all = [...text.matchAll(/export type \* from '\.\/([^']+)'/gu)].flatMap(([, path]) =>
    [...read(path!).matchAll(/^export (?:type|interface) (\w+)/gmu)].map(([, name]) => name!),
  )
  return new Set([...names, ...all].filter((name) => name !== ''))
}

const runtime = createRuntime({ agents: {} })
describe('docs: migration', () => {
  afterAll(() => runtime.close(0))

  test('every row says where a name went: ours, later or gone', () => {
    expect(rows.length).toBeGreaterThan(70)
    const silent = rows.filter(([, cell, note]) => cell === '' && !/^(later|gone|the same)\b/u.test(note))
    expect(silent).toEqual([])
    expect(ours.length).toBeGreaterThan(80)
  })

  test('exports are exported by the door that is named', () => {
    const names = ours.filter(({ what }) => isExport(what) && what !== 'millrace')
    expect(names.length).toBeGreaterThan(35)
    expect(names.filter(({ what, door }) => !exported(door).has(what))).toEqual([])
  })

  test('doors are doors', () => {
    const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: Record<string, unknown> }
    const named = ours.map(({ what }) => /^millrace(?:\/(\w+))?$/u.exec(what)).filter((match) => match !== null)
    expect(named.length).toBeGreaterThan(1)
    for (const [, door] of named) expect(Object.keys(exports)).toContain(door === undefined ? '.' : `./${door}`)
  })

  const after = (prefix: string) =>
    ours.flatMap(({ what }) => (what.startsWith(prefix) ? [what.slice(prefix.length)] : []))

  test('step types, config keys, file keys and parts exist', () => {
    expect(after('type: ').filter((type) => !(builtinSteps as readonly string[]).includes(type))).toEqual([])
    const keys = Object.keys(llmConfig().shape)
    expect(after('llm: ').filter((key) => !keys.includes(key))).toEqual([])
    const top = Object.keys((agentJsonSchema() as { properties: object }).properties)
    expect(after('file: ').filter((key) => !top.includes(key))).toEqual([])
    const source = ['model-part', 'part', 'request-part']
      .map((name) => readFileSync(`src/part/${name}.ts`, 'utf8'))
      .join('\n')
    const parts = after('part: ')
    expect(parts.filter((part) => !source.includes(`type: '${part}'`) && !source.includes(`V3<'${part}'>`))).toEqual([])
    expect([after('type: '), after('llm: '), after('file: '), parts].map(({ length }) => length > 1)).not.toContain(
      false,
    )
  })

  test('routes answer, and commands exist', async () => {
    const handler = createHandler({ runtime, authorize: () => true })
    const routes = ours.filter(({ what }) => /^(GET|POST) /u.test(what))
    expect(routes.length).toBeGreaterThan(4)
    for (const { what } of routes) {
      const [method, path] = what.split(' ') as [string, string]
      const response = await handler(new Request(`http://x${path.replaceAll(/:\w+/gu, 'x')}`, { method }))
      const { error } = (await response.json()) as { error?: { code: string } }
      expect([what, ['not-found', 'method-not-allowed'].includes(error?.code ?? '')]).toEqual([what, false])
    }
    const commands = createProgram(createContext()).commands.map((command) => command.name())
    const named = ours.flatMap(({ what }) => (what.startsWith('millrace ') ? [what.split(' ')[1]!] : []))
    expect(named.length).toBeGreaterThan(2)
    expect(named.filter((name) => !commands.includes(name))).toEqual([])
  })
})
