/**
 * Coding CLIs from npm, set up as docs/coding-clis.md says: the agent's tool runs on the server, once, the CLI runs a command, and the model is told of
 * both in one thread. Ids of calls are like Anthropic's, which some CLIs would rename.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { readKept } from '../../src/fold/read-view.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { readDocument } from '../docs/documents.ts'
import { agent } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'

const run = promisify(execFile)
const page = readDocument('docs/coding-clis.md')

const clis: [heading: string, name: string, tool: string][] = [
  ['OpenCode', 'opencode-ai', 'bash'],
  ['Qwen Code', '@qwen-code/qwen-code', 'run_shell_command'],
  ['Pi', '@earendil-works/pi-coding-agent', 'bash'],
  ['Cline', 'cline', 'run_commands'],
  ['Continue', '@continuedev/cli', 'Bash'],
  ['Kimi', '@moonshot-ai/kimi-code', 'Bash'],
  ['Grok CLI', '@vibe-kit/grok-cli', 'bash'],
  ['Droid', 'droid', 'Execute'],
  ['GitHub Copilot CLI', '@github/copilot', 'bash'],
]

/** What the page says of a CLI: a file and a command, or commands. */
function setUp(
  heading: string,
  url: string,
): { version: string; file?: [path: string, content: string]; command: string } {
  const version = new RegExp(String.raw`\[${heading}\]\(#[\w-]+\)[^|]* ([\d.]+) \|`, 'u').exec(page)![1]!
  const section = page
    .split(`\n## ${heading}\n`)[1]!
    .split('\n## ', 1)[0]!
    .replaceAll('http://localhost:3000/v1', `${url}/v1`)
  const block = /```\w+\n(.*?)```/su.exec(section)![1]!
  const named = /^`([^`]+)`(?: in the project)?; then `([^`]+)`/mu.exec(section)
  return named === null ? { version, command: block } : { version, file: [named[1]!, block], command: named[2]! }
}

describe('coding CLIs', () => {
  test.each(clis)('%s', { timeout: 400_000 }, async (heading, name, shell) => {
    const root = mkdtempSync(join(tmpdir(), 'millrace-clis-'))
    // Some install so many files that a busy disk takes minutes.
    onTestFinished(() => rmSync(root, { recursive: true, force: true }), 300_000)
    const [servers, own] = ['toolu_01T1x1fJ34qAmk2tNTrN7Up6', 'toolu_01D7FLrfh4GYq7yT1ULFeyMV']
    let ran = 0
    const multiply = { description: 'Multiplies.', parameters: z.object({}), execute: () => (ran++, 12 * 7) }
    const model = createTold((prompt) => {
      const { tools = [] } = model.calls.at(-1)!
      const results = resultsIn(prompt)
      if (tools.length <= 1) return [text('A title'), finish()]
      if (!results.has(servers)) return [toolCall(servers, 'multiply'), finish('tool-calls')]
      const input = {
        command: 'echo hi',
        description: 'Says hi.',
        summary: 'Says hi.',
        riskLevel: 'low',
        riskLevelReason: 'none',
      }
      const asked =
        shell === 'run_commands' ? { commands: ['echo hi'] } : shell === 'Bash' ? { command: 'echo hi' } : input
      if (!results.has(own)) return [toolCall(own, shell, asked), finish('tool-calls')]
      if (!tools.some(({ name: each }) => each === 'submit_and_exit')) return [text('It is 84.'), finish()]
      return [
        text('It is 84.'),
        toolCall('toolu_01NRLabsLyVHZPKxbKvkfSMn', 'submit_and_exit', { summary: 'It is 84.', verified: true }),
        finish('tool-calls'),
      ]
    })
    const agents = { assistant: agent('tools: [multiply]'), title: agent() }
    const server = await startServer({ agents, tools: { multiply }, scripts: { m: model } })
    onTestFinished(() => server.close())
    const { version, file, command } = setUp(heading, server.url)

    const [home, work] = ['home', 'work'].map((folder) => join(root, folder)) as [string, string]
    for (const folder of [home, work]) mkdirSync(folder)
    writeFileSync(join(root, 'package.json'), '{}')
    const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', `${name}@${version}`]
    await run('npm', install, { cwd: root })
    // It links the program for this machine, which is installed already.
    if (name === 'opencode-ai')
      await run(process.execPath, ['postinstall.mjs'], { cwd: join(root, 'node_modules', name) })
    if (file !== undefined) {
      const path = file[0].startsWith('~') ? file[0].replace('~', home) : join(work, file[0])
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, file[1])
    }
    const env = {
      PATH: `${join(root, 'node_modules/.bin')}:${process.env['PATH']}`,
      HOME: home,
      COPILOT_OFFLINE: 'true',
    }
    expect(home).not.toBe(homedir())
    const asked = run('sh', ['-c', command], { cwd: work, env, timeout: 90_000 })
    asked.child.stdin!.end()
    expect((await asked).stdout).toContain('84')
    const told = model.prompts.map((prompt) => resultsIn(prompt)).find((results) => results.has(own))!
    expect([JSON.stringify(told.get(servers)), JSON.stringify(told.get(own))]).toEqual([
      expect.stringContaining('84'),
      expect.stringContaining('hi'),
    ])
    expect(ran).toBe(1)
    const rows = await server.store.runs.list()
    const runs = await Promise.all(rows.map(({ id }) => readKept(server.store, id)))
    const turns = runs.filter((kept) => /toolu_|It is 84/u.test(JSON.stringify(kept?.messages)))
    expect(turns.length).toBeGreaterThan(1)
    expect(new Set(turns.map((kept) => kept?.threadId)).size).toBe(1)
  })
})
