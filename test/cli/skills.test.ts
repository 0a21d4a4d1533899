/** Skills on the command line and over HTTP: `check`, `show`, `GET /api/agents/<id>`, and files that change. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { openProject } from '../../src/project/project.ts'
import { folder, ran, serving } from '../support/cli.ts'
import { startUpstream } from '../support/upstream.ts'

const agent = `skills: [skills/*]
workflow:
  - id: answer
    type: llm
    config: { model: "box:m", stream: true }
`
const skill = (name: string, more = '') => `---\nname: ${name}\ndescription: About ${name}\n${more}---\n# ${name}\n`
const files = (more = '') => ({
  'agents/a.yaml': agent,
  'agents/skills/pdf/SKILL.md': skill('pdf', more),
  'agents/skills/pdf/forms.md': 'Forms',
})
const endpoint = ['--endpoint', 'box=http://127.0.0.1:9/v1']

describe('millrace check', () => {
  test('a mistake in a skill has the places of both files, and exits with 1', async () => {
    const cwd = folder({ ...files(), 'agents/skills/pdf/SKILL.md': skill('PDF') })
    const { code, out } = await ran(['check', ...endpoint], { cwd })
    expect(code).toBe(1)
    expect(out).toBe(
      'agents/a.yaml:1:10 skills/pdf/SKILL.md:2:7 "name" must have 1 to 64 small letters, digits and single hyphens between them, not "PDF"\n',
    )
  })

  test('allowed-tools is a warning', async () => {
    const { code, err } = await ran(['check', ...endpoint], { cwd: folder(files('allowed-tools: Bash\n')) })
    expect(code).toBe(0)
    expect(err).toContain('agents/a.yaml:1 warning: skills/pdf/SKILL.md:4:1 "allowed-tools" is ignored')
  })
})

describe('millrace show', () => {
  test('says which skills were read, with their files', async () => {
    const calls = [{ name: 'pdf' }, { name: 'pdf', file: 'forms.md' }, { name: 'pdf', file: 'none.md' }]
    const upstream = await startUpstream((reply, n) => {
      reply.accept()
      if (n > calls.length) {
        reply.say('done')
        reply.finish()
      } else {
        reply.call(`c${n}`, 'useSkill', calls[n - 1])
        reply.finish('tool_calls')
      }
    })
    const cwd = folder(files())
    const { code } = await ran(['run', 'a', '-m', 'Fill it', '--endpoint', `box=${upstream.baseURL}`], { cwd })
    await upstream.close()
    expect(code).toBe(0)
    const [{ id }] = JSON.parse((await ran(['ps', '--json'], { cwd })).out) as [RunRow]
    expect((await ran(['show', id], { cwd })).out).toMatch(/^skills {6}pdf \(forms\.md\)$/mu)
    expect(JSON.parse((await ran(['show', id, '--json', '--full'], { cwd })).out)).toMatchObject({
      skills: ['pdf (forms.md)'],
    })
  })
})

describe('GET /api/agents/<id>', () => {
  test('lists the skills of an agent', async () => {
    const { url } = await serving(['agents', ...endpoint], { cwd: folder(files()) })
    const found = (await (await fetch(`${url}/api/agents/a`)).json()) as Record<string, unknown>
    expect(found['skills']).toEqual([{ name: 'pdf', description: 'About pdf' }])
  })
})

describe('a folder of agents', () => {
  test('is read again when a skill changes, and when one is added', async () => {
    const cwd = folder(files())
    const endpoints = [{ name: 'box', baseURL: 'http://127.0.0.1:9/v1' }]
    const { runtime, agents } = await openProject({ dir: join(cwd, 'agents'), data: 'none', env: {}, endpoints })
    const changed: string[] = []
    agents.watch((ids) => void changed.push(...ids))
    const named = () =>
      runtime.agents.get('a')!.pipeline.skills!.map(({ name, description }) => `${name}: ${description}`)
    expect(named()).toEqual(['pdf: About pdf'])
    const path = (name: string) => join(cwd, `agents/skills/${name}`)
    writeFileSync(join(path('pdf'), 'SKILL.md'), skill('pdf').replace('About', 'All about'))
    await vi.waitFor(() => expect(named()).toEqual(['pdf: All about pdf']))
    mkdirSync(path('mail'))
    await vi.waitFor(() => expect(changed.length).toBeGreaterThan(0))
    writeFileSync(join(path('mail'), 'SKILL.md'), skill('mail'))
    await vi.waitFor(() => expect(named()).toEqual(['mail: About mail', 'pdf: All about pdf']))
    agents.close()
    await runtime.close(0)
  })
})
