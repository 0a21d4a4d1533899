/** What the documents show works as it stands there: TypeScript compiles, agents are valid, pasted lines answer. */
import { execFile, spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { folder, serving } from '../support/cli.ts'
import { snippetsIn } from './documents.ts'
import { createProject, root } from './readme-project.ts'

const exec = promisify(execFile)

const project = createProject()
afterAll(() => rmSync(project, { recursive: true, force: true }))

/** Those about the run of a line before are run by streaming-protocol.test.ts. */
const curls = snippetsIn('sh').flatMap(({ place, text }) =>
  text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line.startsWith('curl ') && !/\$run\b/iu.test(line))
    .map((line) => ({ place, line })),
)

describe('README.md', () => {
  test('TypeScript in the documents compiles', { timeout: 300_000 }, async () => {
    const files = snippetsIn('ts', 'tsx').map(({ place, language, text }) => {
      const name = `${place.replaceAll(/\W/gu, '-')}.${language}`
      writeFileSync(join(project, name), text)
      return name
    })
    expect(files.length).toBeGreaterThan(3)
    // `millrace` is the package with the types of the build, as readers have it.
    const compilerOptions = { types: ['node'], typeRoots: [join(project, 'node_modules/@types')], paths: {} }
    const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: [], files }
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const { stdout } = await exec(process.execPath, [tsc, '-p', project, '--noEmit', '--singleThreaded']).catch(
      (error: { stdout: string }) => error,
    )
    expect(stdout).toBe('')
  })

  test('the program of docs/library.md prints an answer', async () => {
    const program = snippetsIn('ts').find(({ text }) => text.includes("runtime.start('assistant'"))!
    writeFileSync(join(project, 'program.ts'), program.text)
    const env = { ...process.env, MILLRACE_DEMO_DELAY_MS: '0' }
    const { stdout } = await exec(process.execPath, [join(project, 'program.ts')], { cwd: project, env })
    expect(stdout).toMatch(/\w+ \w+[^]*completed \d+\n$/u)
  })

  test('the OpenAI clients of docs/openai.md print an answer', async () => {
    const { url } = await serving([join(root, 'agents'), '--data', join(folder(), 'data')])
    const programs = snippetsIn('ts').filter(
      ({ place, text }) => place.startsWith('docs/openai.md') && text.includes('localhost:3000/v1'),
    )
    expect(programs).toHaveLength(3)
    for (const [i, { text }] of programs.entries()) {
      const file = join(project, `openai-${i}.ts`)
      writeFileSync(file, text.replaceAll('http://localhost:3000', url))
      const { stdout } = await exec(process.execPath, [file], { cwd: project })
      expect(stdout).toContain('12*7 = 84.')
    }
  }, 60_000)

  test('the AG-UI clients of docs/ag-ui.md print an answer', async () => {
    const { url } = await serving([join(root, 'agents'), '--data', join(folder(), 'data')])
    const programs = snippetsIn('ts').filter(({ place }) => place.startsWith('docs/ag-ui.md'))
    const said: string[] = []
    for (const [i, { text }] of programs.entries()) {
      const file = join(project, `ag-ui-${i}.ts`)
      writeFileSync(file, text.replaceAll('http://localhost:3000', url))
      said.push((await exec(process.execPath, [file], { cwd: project })).stdout)
    }
    expect(said).toEqual([expect.stringContaining('12*7 = 84.'), expect.stringContaining('Rome')])
  }, 60_000)

  test('the Socket.IO client of docs/socket-io.md answers with its tool', async () => {
    const { url } = await serving([join(root, 'agents'), '--data', join(folder(), 'data')])
    const programs = snippetsIn('ts').filter(({ place }) => place.startsWith('docs/socket-io.md'))
    expect(programs).toHaveLength(1)
    const file = join(project, 'socket-io.ts')
    writeFileSync(file, programs[0]!.text.replaceAll('http://localhost:3000', url))
    const { stdout, stderr } = await exec(process.execPath, [file], { cwd: project })
    expect([stdout, stderr]).toEqual([expect.stringContaining('Rome'), ''])
  }, 60_000)

  test('every curl line answers when it is pasted, in the order of the page', async () => {
    expect(curls.length).toBeGreaterThan(2)
    const server = await serving([join(root, 'agents'), '--data', join(folder(), 'data')])
    const said: string[] = []
    for (const { place, line } of curls) {
      const pasted = line.replaceAll('http://localhost:3000', server.url)
      const { stdout } = await exec('bash', ['-c', pasted.replaceAll('curl ', 'curl -sS --fail-with-body -m 15 ')])
      expect([place, stdout.length > 0, /"error":(?!\s*null)/u.test(stdout)]).toEqual([place, true, false])
      said.push(stdout)
    }
    expect(said[0]).toContain('84')
    expect(said[1]).toMatch(/^data: \{"type":"start"[^]*data: \[DONE\]\n\n$/u)
    const entries = said[2]!
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { seq: number; type: string })
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1))
    expect(entries.at(-1)?.type).toBe('run-end')
  }, 60_000)

  const python = ['python3', 'python'].find((name) => spawnSync(name, ['--version']).status === 0)
  test.runIf(python !== undefined)('Python in the documents is Python', async () => {
    const programs = snippetsIn('python')
    expect(programs.length).toBeGreaterThan(0)
    for (const { text } of programs) await exec(python!, ['-c', 'import ast, sys; ast.parse(sys.argv[1])', text])
  })
})
