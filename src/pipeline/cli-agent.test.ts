import { describe, expect, test } from 'vitest'
import { faultsOf } from './fault.ts'
import { parsePipeline } from './parse.ts'
import type { Known } from './pipeline.ts'

const known: Known = { stepTypes: [], tools: [], callbacks: ['log'], providers: [], env: ['WORK'] }
const agent = (...lines: string[]) =>
  ['workflow:', '  - id: a', '    type: cli-agent', '    config:', ...lines.map((line) => `      ${line}`)].join('\n')

function read(...lines: string[]) {
  const [step] = parsePipeline(agent(...lines), known).workflow
  return step
}

function faults(...lines: string[]): string[] {
  try {
    parsePipeline(agent(...lines), known)
    return []
  } catch (error) {
    return faultsOf(error).map(({ line, column, message }) => `${line}:${column} ${message}`)
  }
}

test('a name is enough: it works where the server was started, on what the client said', () => {
  expect(read('cli: codex')).toEqual({
    id: 'a',
    line: 2,
    type: 'cli-agent',
    config: { cli: 'codex', prompt: '$input.messages', cwd: '.', env: [], args: [], rawLog: false },
  })
})

test('every key is read; limits belong to the step', () => {
  const step = read(
    'cli: claude',
    'command: [npx, -y, "@anthropic-ai/claude-code"]',
    'prompt: "Do $input.what"',
    'cwd: $env.WORK/$input.project',
    'model: $input.model',
    'permissionMode: plan',
    'allowedTools: [Read, "Bash(git log:*)"]',
    'env: [ANTHROPIC_API_KEY, "HTTPS_PROXY?"]',
    'args: [--max-turns, "3"]',
    'rawLog: true',
    'stream: false',
    'budget: { tokens: 5 }',
    'timeouts: { idle: 1m }',
    'onToolCall: log',
  )
  expect(step).toMatchObject({
    config: {
      command: ['npx', '-y', '@anthropic-ai/claude-code'],
      env: ['ANTHROPIC_API_KEY', 'HTTPS_PROXY?'],
      args: ['--max-turns', '3'],
      stream: false,
      onToolCall: 'log',
    },
    budget: { tokens: 5 },
    timeouts: { idle: 60_000 },
  })
  expect(read('cli: claude', 'command: my-claude')).toMatchObject({ config: { command: ['my-claude'] } })
})

test('a prompt may be a file', () => {
  const text = agent('cli: claude', 'prompt: { file: prompts/review.md }')
  const pipeline = parsePipeline(text, known, () => 'Review $input.what')
  expect(pipeline.workflow[0]).toMatchObject({ config: { prompt: 'Review $input.what' } })
})

describe('faults', () => {
  test.each<[string[], string]>([
    [['cli: claud'], '5:12 "cli" must be one of claude, codex, gemini, qwen (did you mean "claude"?)'],
    [['cli: claude', 'promt: x'], '6:7 unknown key "promt"'],
    [['cli: claude', 'permissionMode: acceptEdit'], '6:23 "permissionMode" must be one of default, acceptEdits'],
    [['cli: codex', 'permissionMode: plan'], '6:23 "permissionMode" must be one of read-only, workspace-write'],
    [['cli: codex', 'allowedTools: [Read]'], '6:21 "allowedTools" does not apply to codex'],
    [['cli: claude', 'allowedTools: ["--x"]'], '6:22 item 1 of "allowedTools" must not begin with "-"'],
    [['cli: claude', 'args: [ok, $input.flag]'], '6:18 "args" must not contain references ($input.flag); write it out'],
    [['cli: claude', 'command: $input.program'], '6:16 "command" must not contain references'],
    [['cli: claude', 'env: [A-B]'], '6:13 item 1 of "env" must be the name of an environment variable'],
    [['cli: claude', 'cwd: $input.dir'], '6:12 "cwd" must begin with a folder that no request chooses'],
    [['cli: claude', 'cwd: "$input.dir/work"'], '6:12 "cwd" must begin with a folder that no request chooses'],
    [['cli: claude', 'onProgress: lgo'], '6:19 unknown callback "lgo" (did you mean "log"?)'],
    [['cli: claude', 'prompt: $nope.text'], '6:15 unknown variable $nope.text'],
  ])('%j', (lines, fault) => {
    expect(faults(...lines).join('\n')).toContain(fault)
  })
})
