/** Every agent in the documents is saved, checked and run as a reader would: it must answer, on the demo model. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ran } from '../support/cli.ts'
import { writeFakes } from '../support/cli/fakes.ts'
import { readDocument, snippets, snippetsIn, type Snippet } from './documents.ts'

/** As `# agents/views.yaml` in its first line says, or "Save this as `agents/poet.yaml`" before it. */
function nameOf({ place, text }: Snippet): string {
  const [document, line] = place.split(':') as [string, string]
  const before = readDocument(document).split('\n').slice(0, Number(line)).slice(-5).join('\n')
  const named = /^# agents\/([\w-]+)\.yaml\n/u.exec(text) ?? /Save this as `agents\/([\w-]+)\.yaml`/u.exec(before)
  return named?.[1] ?? place.replaceAll(/\W/gu, '-')
}

/** The lines that its document shows for it, or a plain run. A line may write the file that the next one reads. */
function linesFor(name: string, { place }: Snippet): string[] {
  const document = place.split(':')[0]!
  const shells = snippets.filter((each) => each.language === 'sh' && each.place.startsWith(`${document}:`))
  const shell = shells.find(({ text }) => text.includes(`npx millrace run ${name} `))
  const lines = shell?.text
    .split('\n')
    .filter((line) => line.startsWith('echo ') || line.startsWith(`npx millrace run ${name} `))
  return lines ?? [`npx millrace run ${name} -m "night trains"`]
}

// Test cases have a test of their own, regression-tests.test.ts, and so has docs/mcp.md, whose agents need its servers: mcp.all.test.ts.
const agents = snippetsIn('yaml')
  .filter(({ place, text }) => !/^cases:/mu.test(text) && !place.startsWith('docs/mcp.md:'))
  .map((snippet) => ({ ...snippet, name: nameOf(snippet) }))
const cwd = mkdtempSync(join(tmpdir(), 'millrace-agents-'))
afterAll(() => rmSync(cwd, { recursive: true, force: true }))
/** Where the programs of CLI agents are. */
const env = { PATH: `${cwd}:${process.env['PATH']}` }
describe('docs: agents', () => {
  beforeAll(() => {
    writeFakes(cwd)
    cpSync('agents', join(cwd, 'agents'), { recursive: true })
    mkdirSync(join(cwd, 'node_modules'))
    for (const name of ['zod', '@ai-sdk', 'ai'])
      symlinkSync(resolve('node_modules', name), join(cwd, 'node_modules', name))
    symlinkSync(resolve('.'), join(cwd, 'node_modules/millrace'))
    for (const { name, text } of agents) writeFileSync(join(cwd, `agents/${name}.yaml`), text)
    const config = snippetsIn('ts').find(({ text }) => text.startsWith('// agents/millrace.config.ts'))!
    writeFileSync(join(cwd, 'agents/millrace.config.ts'), config.text)
  })

  test('there are agents in the documents, some with lines of their own', () => {
    expect(agents.length).toBeGreaterThan(5)
    expect(agents.filter((agent) => linesFor(agent.name, agent)[0]!.startsWith('echo ')).length).toBeGreaterThan(1)
  })

  test('none has a fault', async () => {
    const { code, out } = await ran(['check', 'agents'], { cwd, env })
    expect([code, out]).toEqual([0, ''])
  })

  test.each(agents)('$place runs as a reader runs it', async (agent) => {
    for (const line of linesFor(agent.name, agent)) {
      if (line.startsWith('echo ')) {
        execFileSync('bash', ['-c', line], { cwd })
        continue
      }
      const words = [...line.replace(/\s#.*$/u, '').matchAll(/"([^"]*)"|'([^']*)'|(\S+)/gu)].map(
        ([, quoted, single, word]) => quoted ?? single ?? word!,
      )
      const { code, out, err } = await ran(words.slice(2), { cwd, env })
      expect([line, code, err]).toEqual([line, 0, expect.stringContaining('completed')])
      expect(out.trim(), line).not.toBe('')
    }
  })
})
