/** Skills of an agent: what the model is told, what it reads, and what a run keeps of it. */
import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, onTestFinished, test } from 'vitest'
import { finish, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { loadYaml } from '../../src/project/yaml.ts'
import { openProject } from '../../src/project/project.ts'
import { folder } from '../support/cli.ts'
import { entriesOf, only } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'

const question = { messages: [{ role: 'user', content: 'Fill the form' }] }
const skill = (name: string, about: string) => `---\nname: ${name}\ndescription: ${about}\n---\n\n# ${name}\n\nDo it.\n`
const yaml = (config = '') => `
skills: [skills/*]
workflow:
  - id: answer
    type: llm
    config:
      model: script:m
      stream: true
      system: You are $input.who?.
      ${config}
`
const files = (agent: string) => ({
  'agents/a.yaml': agent,
  'agents/skills/mail/SKILL.md': skill('mail', 'Writes mails for $5'),
  'agents/skills/pdf/SKILL.md': skill('pdf', 'Fills forms'),
  'agents/skills/pdf/scripts/fill.py': 'print("fill")',
})

interface Setting {
  agent?: string
  answer: (prompt: LanguageModelV4Prompt) => ScriptStep[]
  cwd?: string
  data?: string
}

async function open({ agent = yaml(), answer, cwd = folder(files(agent)), data = 'none' }: Setting) {
  const model = createTold(answer)
  const config = {
    models: { providers: { script: () => model } },
    tools: { send: { parameters: { type: 'object' }, execute: () => 'sent', approval: true } },
  }
  const { runtime, agents } = await openProject({ dir: join(cwd, 'agents'), data, env: {}, config })
  const close = async () => {
    agents.close()
    await runtime.close(0)
  }
  onTestFinished(close)
  expect(agents.errors).toEqual([])
  return { runtime, model, cwd, close }
}

/** Calls the tool with each input, then says `done`. */
const calling = (...inputs: object[]) => {
  return (prompt: LanguageModelV4Prompt): ScriptStep[] => {
    const n = resultsIn(prompt).size
    return n < inputs.length
      ? [toolCall(`c${n}`, 'useSkill', inputs[n]!), finish('tool-calls')]
      : [text('done'), finish()]
  }
}

async function resultsOf(setting: Setting, input: Record<string, unknown> = question) {
  const { runtime, model } = await open(setting)
  const run = await runtime.start('a', input)
  expect(await run.result).toMatchObject({ outcome: 'completed' })
  const entries = await entriesOf(runtime.store, run.id)
  const results = only(entries, 'tool-result').map(({ result, isError }) => [result, isError])
  return { results, model, entries }
}
const systemOf = (prompt: LanguageModelV4Prompt) => (prompt[0]?.role === 'system' ? prompt[0].content : undefined)

const about = `# Skills

A skill has instructions for a kind of task. If one fits the task, read it with useSkill before you begin.

- mail: Writes mails for $5
- pdf: Fills forms`

describe('skills', () => {
  test('the prompt names them behind the system message, and the model reads one, then a file of it', async () => {
    const answer = calling({ name: 'pdf' }, { name: 'pdf', file: 'scripts/fill.py' })
    const { results, model } = await resultsOf({ answer }, { ...question, who: 'kind' })
    expect(model.prompts.map(systemOf)).toEqual(Array(3).fill(`You are kind.\n\n${about}`))
    expect(model.calls[0]!.tools?.map(({ name }) => name)).toEqual(['useSkill'])
    expect(results).toEqual([
      ['# pdf\n\nDo it.\n\n[Files of this skill: scripts/fill.py]', false],
      ['print("fill")', false],
    ])
  })

  test('errors are results that the model sees', async () => {
    const agent = yaml('maxSteps: 9')
    const answer = calling(
      { name: 'pfd' },
      { name: 'pdf', file: '../../a.yaml' },
      { file: 'x' },
      { name: 'pdf', from: 1e9 },
    )
    const { results } = await resultsOf({ agent, answer })
    expect(results.map(([, isError]) => isError)).toEqual([true, true, true, true])
    expect(results[0]![0]).toBe('There is no skill "pfd" (did you mean "pdf"?). The skills: mail, pdf.')
    expect(results[1]![0]).toContain('must not have ".."')
    expect(results[2]![0]).toContain('name')
    expect(results[3]![0]).toContain('has 13 characters')
  })

  test('a step that does not answer, and one with skills: false, know none', async () => {
    const first = '  - id: facts\n    type: llm\n    config: { model: "script:m", messages: $input.messages }\n'
    const agent = yaml('skills: false').replace('workflow:\n', `workflow:\n${first}`)
    const { model } = await resultsOf({ agent, answer: () => [text('done'), finish()] })
    expect(model.calls.map(({ tools }) => tools)).toEqual([undefined, undefined])
    expect(model.prompts.map(systemOf)).toEqual([undefined, 'You are .'])
  })

  test('a router knows them', async () => {
    const agent = yaml('skills: false').replace(
      'workflow:\n',
      'workflow:\n  - { id: route, type: router, config: { model: "script:m" } }\n',
    )
    const { model, results } = await resultsOf({ agent, answer: calling({ name: 'mail' }) })
    expect(systemOf(model.prompts[0]!)).toBe(about)
    expect(results[0]).toEqual(['# mail\n\nDo it.', false])
  })

  test('a tool useSkill of the request does not replace it', async () => {
    const tools = [{ name: 'useSkill', parameters: { type: 'object' } }]
    const { results, entries } = await resultsOf({ answer: calling({ name: 'mail' }) }, { ...question, tools })
    expect(results).toEqual([['# mail\n\nDo it.', false]])
    expect(only(entries, 'warning').map(({ code }) => code)).toEqual(['tool-name-taken'])
  })

  test('loadYaml reads them, and keeps their folder for the executor', async () => {
    const cwd = folder(files(yaml().replace('script:m', 'demo:assistant')))
    const loaded = await loadYaml(join(cwd, 'agents/a.yaml'))
    expect(loaded.skills?.map(({ folder: path }) => path)).toEqual(['skills/mail', 'skills/pdf'])
    expect(loaded.folder).toBe(`${join(cwd, 'agents')}/`)
  })
})

describe('what a run has read', () => {
  /** Reads a skill, then needs an approval. */
  const answer = (prompt: LanguageModelV4Prompt): ScriptStep[] => {
    const n = resultsIn(prompt).size
    if (n === 0) return [toolCall('c0', 'useSkill', { name: 'pdf' }), finish('tool-calls')]
    if (n === 1) return [toolCall('c1', 'send', {}), finish('tool-calls')]
    return [text('done'), finish()]
  }

  test('stays, and the run goes on, when its folder has changed or is gone', async () => {
    const agent = yaml('tools: [send]').replace('You are $input.who?.', '[{ file: AGENTS.md }, "Be brief."]')
    const cwd = folder({ ...files(agent), 'agents/AGENTS.md': 'Be kind.' })
    const data = join(cwd, 'data')
    const first = await open({ answer, cwd, data })
    const { id, result } = await first.runtime.start('a', question)
    expect(await result).toMatchObject({ outcome: 'suspended' })
    const [request] = only(await entriesOf(first.runtime.store, id), 'request')
    await first.close()

    const before = `Be kind.\n\nBe brief.\n\n${about}`
    expect(first.model.prompts.map(systemOf)).toEqual([before, before])
    appendFileSync(join(cwd, 'agents/skills/mail/SKILL.md'), 'more')
    writeFileSync(join(cwd, 'agents/skills/mail/SKILL.md'), skill('mail', 'Something else'))
    rmSync(join(cwd, 'agents/skills/pdf'), { recursive: true })
    writeFileSync(join(cwd, 'agents/AGENTS.md'), 'Be rude.')

    const second = await open({ answer, cwd, data })
    await second.runtime.answer(id, request!.requestId, { kind: 'approval', approved: true })
    expect(await (await second.runtime.open(id))!.result).toMatchObject({ outcome: 'completed' })
    expect(second.model.prompts.map(systemOf)).toEqual([before])
    expect(JSON.stringify(second.model.prompts[0])).toContain('# pdf\\n\\nDo it.')
    // The next run has the new text.
    const next = await second.runtime.start('a', question)
    await next.result
    expect(systemOf(second.model.prompts[1]!)).toContain('Be rude.\n\nBe brief.\n\n# Skills')
    expect(systemOf(second.model.prompts[1]!)).toContain('- mail: Something else')
    expect(systemOf(second.model.prompts[1]!)).not.toContain('pdf')
  })
})
