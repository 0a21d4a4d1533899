/** Test cases whose models and tools are answered from recordings. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  errorPart,
  finish,
  latch,
  text,
  toolCall,
  type ScriptStep,
  createScriptedModel,
  type Script,
} from '../../src/models/scripted.ts'
import type { Config } from '../../src/project/config.ts'
import { labOf } from './lab.ts'

const agent = (more = '') => `workflow:
  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true, system: "Be kind.", tools: [weather] ${more} } }
`

function scripted(script: Script) {
  const model = createScriptedModel(script)
  return { model, config: { models: { providers: { demo: () => model } } } satisfies Config }
}

function weather(execute: (input: { city: string }) => unknown): Config {
  return { tools: { weather: { parameters: z.object({ city: z.string() }), execute } } }
}

const cases = (...lines: string[]) => `agent: a\ncases:\n${lines.map((line) => `  - ${line}`).join('\n')}\n`
const failures = ([result]: Awaited<ReturnType<Awaited<ReturnType<typeof labOf>>['run']>>) =>
  result!.failures.map(({ what, message }) => `${what}: ${message}`)

describe('regression tests: recorded', () => {
  test('recorded once, a case passes without its models and tools: what they said and returned is kept', async () => {
    const spoken = scripted([
      [text('I look.'), toolCall('weather', { city: 'Rome' }), finish('tool-calls', { in: 100, out: 20 })],
      [text('It is warm.'), finish('stop', { in: 200, out: 30 })],
    ])
    const asked: string[] = []
    const lab = await labOf({
      agents: { a: agent() },
      cases: cases(
        '{ name: Warm?, message: Weather, expect: { text: warm, tools: [{ name: weather, input: { city: Rome } }], budget: { tokens: 350, steps: 3 } } }',
      ),
      config: weather(({ city }) => {
        asked.push(city)
        return { degrees: 30 }
      }),
    })
    const [missing] = await lab.run()
    expect(missing).toMatchObject({ status: 'failed', isLive: false })
    expect(missing!.failures[0]!.message).toMatch(/^there is no recording .*warm\.ndjson; make it with --record$/u)

    const [recorded] = await lab.run({ record: true, config: spoken.config })
    expect(recorded).toMatchObject({ status: 'passed', isLive: true, usage: { totalTokens: 350 } })
    expect(asked).toEqual(['Rome'])

    // The provider has no key, and no tool may run: both would fail.
    const broken = weather(() => {
      throw new Error('the tool has run')
    })
    const [played] = await lab.run({ config: { ...broken, models: {} } })
    expect(played).toMatchObject({ status: 'passed', isLive: false, warnings: [], usage: { totalTokens: 350 } })
    expect(asked).toEqual(['Rome'])
  })

  test('long results, and what was read of them by their handles, over two turns', async () => {
    const page = `${'start '.repeat(2000)}The needle. ${'end '.repeat(10_000)}`
    const spoken = scripted(({ options: { prompt } }, n) => {
      const handles = [...JSON.stringify(prompt).matchAll(/kept as (res_\w+)/gu)].map(([, handle]) => handle)
      // What is recorded is compacted: a replay has other places in its log.
      const words = text(...'I look at it word by word.'.split(' '))
      const id = `c${n}`
      if (n === 1 || n === 4) return [words, toolCall('weather', { city: 'Rome' }, id), finish('tool-calls')]
      if (n === 2)
        return [words, toolCall('readResult', { handle: handles[0], from: 12_000 }, id), finish('tool-calls')]
      if (n === 5)
        return [words, toolCall('readResult', { handle: handles[1], find: 'needle' }, id), finish('tool-calls')]
      return [text(JSON.stringify(prompt).includes('"The needle') ? 'Found.' : 'Lost.')]
    })
    const expected = '{ text: Found., tools: [{ name: weather }, { name: readResult }] }'
    // The prompt of the third turn has what was read in the second one.
    const turns = `turns: [{ message: One, expect: ${expected} }, { message: Two, expect: ${expected} }, { message: Three }]`
    const lab = await labOf({
      agents: { a: agent() },
      cases: cases(`{ name: x, strict: true, ${turns} }`),
      config: weather(() => page),
    })
    expect(failures(await lab.run({ record: true, config: spoken.config }))).toEqual([])
    const played = await lab.run({ config: { ...weather(() => Promise.reject(new Error('ran'))), models: {} } })
    expect(failures(played)).toEqual([])
    expect(played[0]).toMatchObject({ status: 'passed', isLive: false, warnings: [] })
  })

  test('a changed prompt is a warning, and with strict a failure', async () => {
    const lab = await labOf({
      agents: { a: agent() },
      cases: cases('{ name: x, message: Hi }'),
      config: weather(() => 1),
    })
    await lab.run({ record: true, config: scripted([[text('Hello')]]).config })
    expect((await lab.run())[0]).toMatchObject({ status: 'passed', warnings: [] })
    writeFileSync(`${lab.dir}/agents/a.yaml`, agent().replace('kind', 'rude'))
    const changed =
      'the prompt of answer is not the recorded one: its system prompt has changed, from "Be kind." to "Be rude."'
    expect((await lab.run())[0]).toMatchObject({ status: 'passed', warnings: [changed] })
    const strict = cases('{ name: x, message: Hi, strict: true }')
    const [refused] = await lab.run({ cases: strict })
    expect(refused).toMatchObject({ status: 'failed', warnings: [] })
    expect(refused!.failures).toEqual([{ what: 'prompt', message: `${changed}; record it again with --record` }])
    writeFileSync(`${lab.dir}/agents/a.yaml`, agent().replace('demo:assistant', 'demo:other'))
    expect((await lab.run())[0]!.warnings).toEqual([
      'the prompt of answer is not the recorded one: the model was demo:assistant and is demo:other',
    ])
    writeFileSync(`${lab.dir}/agents/a.yaml`, agent())
    const [other] = await lab.run({ cases: cases('{ name: x, message: Ho }') })
    expect(other!.warnings).toEqual(['the prompt of answer is not the recorded one: its messages have changed'])
  })

  test('a run that asks for more than was recorded fails with the cure', async () => {
    const lab = await labOf({
      agents: { a: agent() },
      cases: cases('{ name: x, message: Hi }'),
      config: weather(() => 'sun'),
    })
    await lab.run({ record: true, config: scripted([[toolCall('weather', { city: 'Rome' })], [text('Sun')]]).config })
    const file = lab.recording('x')
    const lines = readFileSync(file, 'utf8').trim().split('\n')
    // A recording whose tool call has another id: as if the run had made another call.
    writeFileSync(
      file,
      `${lines.map((line) => (line.includes('"type":"tool-result"') ? line.replace('"weather"', '"other"') : line)).join('\n')}\n`,
    )
    const [result] = await lab.run()
    expect(result!.status).toBe('failed')
    expect(failures([result!])).toContain(
      'recording: the recording has no result for a call of weather; record it again with --record, or set "tools: live"',
    )
    writeFileSync(file, lines.slice(0, -1).join('\n'))
    expect(failures(await lab.run())[0]).toMatch(
      /^run: .*x\.ndjson is not the log of a whole run .* Record it again with --record\.$/u,
    )
  })

  test('tools: live runs the tools; the models are answered from the recording all the same', async () => {
    const asked: string[] = []
    const lab = await labOf({
      agents: { a: agent() },
      cases: cases('{ name: x, message: Hi, tools: live }'),
      config: weather(({ city }) => void asked.push(city)),
    })
    await lab.run({ record: true, config: scripted([[toolCall('weather', { city: 'Rome' })], [text('Sun')]]).config })
    expect((await lab.run())[0]!.status).toBe('passed')
    expect(asked).toEqual(['Rome', 'Rome'])
  })

  test('callbacks are called when tools are live, and only then', async () => {
    let called = 0
    const lab = await labOf({
      agents: { a: agent(', onFinish: tell') },
      cases: cases('{ name: x, message: Hi }'),
      config: { ...weather(() => 1), callbacks: { tell: () => void called++ } },
    })
    await lab.run({ record: true, config: scripted([[text('Hello')]]).config })
    expect(called).toBe(1)
    await lab.run()
    expect(called).toBe(1)
    await lab.run({ cases: cases('{ name: x, message: Hi, tools: live }') })
    expect(called).toBe(2)
  })

  test('approvals and client tools are answered by the case; what has no answer fails with the line to add', async () => {
    const tools =
      'tools: [{ name: weather, approval: true }, { name: where, client: true, description: d, parameters: {} }]'
    const file = agent().replace('tools: [weather]', tools)
    const script: Script = [[toolCall('weather', { city: 'Rome' })], [toolCall('where', {})], [text('Done')]]
    const lab = await labOf({ agents: { a: file }, cases: '', config: weather(({ city }) => city) })
    const all = cases(
      '{ name: x, message: Hi, answers: [{ tool: weather, approve: true, input: { city: Oslo } }, { tool: where, output: { town: Ghent } }], expect: { tools: [{ name: weather, input: { city: Oslo } }] } }',
    )
    const spoken = scripted(script)
    const [recorded] = await lab.run({ cases: all, record: true, config: spoken.config })
    expect(recorded!.failures).toEqual([])
    expect(JSON.stringify(spoken.model.calls[2]!.options.prompt)).toContain('Ghent')
    expect((await lab.run({ cases: all }))[0]).toMatchObject({ status: 'passed', warnings: [] })
    const none = cases('{ name: x, message: Hi }')
    expect(failures(await lab.run({ cases: none }))).toEqual([
      'answer: the run asks for approval of weather; add to answers: - { tool: weather, approve: true }',
    ])
    const some = cases('{ name: x, message: Hi, answers: [{ approve: true }] }')
    expect(failures(await lab.run({ cases: some }))).toEqual([
      'answer: the run asks for the result of where; add to answers: - { tool: where, output: … }',
    ])
  })

  test('a conversation has a run and a recording for each turn, and each is told of by its number', async () => {
    const lab = await labOf({
      agents: { a: agent() },
      cases: cases('{ name: talk, turns: [{ message: One }, { message: Two, expect: { text: second } }] }'),
      config: weather(() => 1),
    })
    const spoken = scripted([[text('first')], [text('second')]])
    const [recorded] = await lab.run({ record: true, config: spoken.config })
    expect(recorded!.status).toBe('passed')
    // The second turn knows the first.
    expect(JSON.stringify(spoken.model.calls[1]!.options.prompt)).toMatch(/One.*first.*Two/u)
    expect([existsSync(lab.recording('talk')), existsSync(lab.recording('talk.2'))]).toEqual([true, true])
    expect((await lab.run())[0]).toMatchObject({ status: 'passed', warnings: [] })
    const wrong = cases('{ name: talk, turns: [{ message: One }, { message: Two, expect: { text: third } }] }')
    expect(failures(await lab.run({ cases: wrong }))).toEqual(['text: turn 2: the answer does not contain "third"'])
  })

  test('a failed model call is recorded when it is expected, and fails again', async () => {
    const lab = await labOf({
      agents: { a: agent() },
      cases: cases('{ name: x, message: Hi, expect: { outcome: failed } }'),
      config: weather(() => 1),
    })
    const failing = scripted([[text('Half'), errorPart(new Error('overloaded'))]])
    expect((await lab.run({ record: true, config: failing.config }))[0]!.failures).toEqual([])
    expect((await lab.run())[0]).toMatchObject({ status: 'passed', warnings: [] })
    // Where it is not expected, it must not replace the recording.
    const before = readFileSync(lab.recording('x'), 'utf8')
    const good = cases('{ name: x, message: Hi }')
    const again = scripted([[errorPart(new Error('no network'))]])
    expect((await lab.run({ cases: good, record: true, config: again.config }))[0]!.status).toBe('failed')
    expect(readFileSync(lab.recording('x'), 'utf8')).toBe(before)
  })

  test('no secret reaches a recording: not from a prompt, an answer or a tool', async () => {
    const secret = 'canary-4f1a9c77b2e84d10'
    const lab = await labOf({
      agents: { a: agent() },
      cases: cases(`{ name: x, message: "my key is ${secret}" }`),
      config: weather(() => ({ key: secret, text: `x${secret}y` })),
      env: { WEATHER_API_KEY: secret },
    })
    const says: ScriptStep[][] = [
      [toolCall('weather', { city: secret })],
      [text('It is ', secret.slice(0, 9), secret.slice(9), '.')],
    ]
    expect((await lab.run({ record: true, config: scripted(says).config }))[0]!.status).toBe('passed')
    const kept = readFileSync(lab.recording('x'), 'utf8')
    expect(kept).toContain('[redacted]')
    expect(kept).not.toContain(secret)
    expect((await lab.run())[0]!.status).toBe('passed')
  })

  test('a judge scores the answer, and its own answer is recorded, too', async () => {
    const critic =
      'workflow:\n  - { id: score, type: llm, config: { model: "judge:m", messages: "$input.messages", output: { schema: { score: number, reason: string } } } }\nreturn: "$stepResult.score.object"\n'
    const lab = await labOf({
      agents: {
        a: agent(),
        critic: critic.replace('id: score,', 'id: score, result: score,').replace('type: llm', 'type: llm'),
      },
      cases: '',
      config: weather(() => 1),
    })
    const expecting = (threshold: number) =>
      cases(
        `{ name: x, message: Greet me, expect: { judge: { agent: critic, threshold: ${threshold}, question: "Is it kind?" } } }`,
      )
    const spoken = createScriptedModel([[text('Hello there')]])
    const judging = createScriptedModel([[text('{"score": 0.7, "reason": "It is short."}')]])
    const config: Config = { models: { providers: { demo: () => spoken, judge: () => judging } } }
    const providers: Config = { models: { providers: { judge: () => judging } } }
    const [recorded] = await lab.run({ cases: expecting(0.7), record: true, config })
    expect(recorded!.failures).toEqual([])
    const prompt = JSON.stringify(judging.calls[0]!.options.prompt)
    for (const part of ['Is it kind?', 'Greet me', 'Hello there']) expect(prompt).toContain(part)
    expect(existsSync(lab.recording('x.judge'))).toBe(true)
    expect((await lab.run({ cases: expecting(0.7), config: providers }))[0]).toMatchObject({
      status: 'passed',
      warnings: [],
    })
    expect(failures(await lab.run({ cases: expecting(0.8), config: providers }))).toEqual([
      'judge: the judge critic gave 0.7, less than 0.8: It is short.',
    ])
    // Judged for another question: the score may be another.
    const asked = expecting(0.7).replace('kind?', 'long?')
    expect((await lab.run({ cases: asked, config: providers }))[0]!.warnings).toEqual([
      'the prompt of score is not the recorded one: its messages have changed',
    ])
    expect(judging.calls).toHaveLength(1)
  })

  test('a matrix runs each case with each model, and records each of them', async () => {
    const asked: string[] = []
    const lab = await labOf({
      agents: { a: agent() },
      cases: `models: [demo:one, demo:two]\n${cases('{ name: x, message: Hi, expect: { text: two } }')}`,
      config: weather(() => 1),
    })
    const config: Config = {
      models: {
        providers: {
          demo: (name) => {
            asked.push(name)
            return createScriptedModel([[text(`I am ${name}`)]])
          },
        },
      },
    }
    const results = await lab.run({ record: true, config })
    expect(asked.toSorted()).toEqual(['one', 'two'])
    expect(results.map(({ model, status }) => [model, status])).toEqual([
      ['demo:one', 'failed'],
      ['demo:two', 'passed'],
    ])
    const kept = readFileSync(lab.recording('x.demo-two'), 'utf8')
    expect(kept).toContain('"model":"demo:two"')
    expect((await lab.run()).map(({ status, warnings }) => [status, warnings])).toEqual([
      ['failed', []],
      ['passed', []],
    ])
    // Other models on the command line take the place of those of the file.
    const [only] = await lab.run({ models: ['demo:two'] })
    expect(only).toMatchObject({ model: 'demo:two', status: 'passed' })
  })

  test('cases run at the same time, as many as allowed, and results keep their order', async () => {
    const gates = [latch(), latch()]
    const lab = await labOf({
      agents: { a: agent() },
      cases: cases('{ name: x, message: "0" }', '{ name: y, message: "1" }', '{ name: z, message: "2" }'),
      config: weather(() => 1),
    })
    const model = createScriptedModel(({ options }) => {
      const n = Number(/"text":"(\d)"/u.exec(JSON.stringify(options.prompt))![1])
      return n < 2 ? [gates[n]!, text('late')] : [text('soon')]
    })
    const began: string[] = []
    const running = lab.run({
      record: true,
      concurrency: 2,
      config: { models: { providers: { demo: () => model } } },
      onStart: ({ test: { name } }) => began.push(name),
    })
    // Both wait for the test at the same time, and the third one for a place.
    await Promise.all(gates.map(({ reached }) => reached))
    expect(began).toEqual(['x', 'y'])
    gates[1]!.open()
    gates[0]!.open()
    expect((await running).map(({ name, status }) => [name, status])).toEqual([
      ['x', 'passed'],
      ['y', 'passed'],
      ['z', 'passed'],
    ])
  })

  test('a stop ends the running case, keeps no recording of it, and starts no other', async () => {
    const gate = latch()
    const lab = await labOf({
      agents: { a: agent() },
      cases: cases('{ name: x, message: Hi }', '{ name: y, message: Hi }'),
      config: weather(() => 1),
    })
    const stop = new AbortController()
    const running = lab.run({
      record: true,
      concurrency: 1,
      signal: stop.signal,
      config: scripted([[text('a'), gate]]).config,
    })
    await gate.reached
    stop.abort()
    expect((await running).map(({ name, status }) => [name, status])).toEqual([['x', 'stopped']])
    expect(existsSync(lab.recording('x'))).toBe(false)
  })

  test('a case that takes too long fails, and --bail leaves out what follows', async () => {
    const lab = await labOf({
      agents: { a: agent() },
      cases: `timeout: 20ms\n${cases('{ name: x, message: Hi }', '{ name: y, message: Hi }')}`,
      config: weather(() => 1),
    })
    const config = scripted([[latch()], [text('Hi')]]).config
    const results = await lab.run({ record: true, concurrency: 1, bail: true, config })
    expect(results).toHaveLength(1)
    expect(failures(results)).toEqual(['run: the case took longer than 20 ms'])
  })
})
