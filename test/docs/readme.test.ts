/** What the documents show works as it stands there: TypeScript compiles, agents are valid, pasted lines answer. */
import { execFile, spawnSync } from 'node:child_process'
import { cpSync, existsSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { folder, ran, serving } from '../support/cli.ts'
import { documents, readDocument, snippetsIn } from './documents.ts'

const exec = promisify(execFile)
const root = resolve(import.meta.dirname, '../..')
const readme = readDocument('README.md')

test('the README holds the two lines that a newcomer pastes', () => {
  for (const line of ['npm ci && npm start', 'npm ci && npm test']) {
    expect(readme.split('\n').filter((each) => each.startsWith(line))).toHaveLength(1)
  }
})

test('TypeScript in the documents compiles', async () => {
  const files = snippetsIn('ts', 'tsx').map(({ place, language, text }) => {
    const name = `${place.replaceAll(/\W/gu, '-')}.${language}`
    writeFileSync(join(project, name), text)
    return name
  })
  expect(files.length).toBeGreaterThan(3)
  const compilerOptions = { types: ['node'], typeRoots: [join(project, 'node_modules/@types')] }
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: [], files }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config))
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { stdout } = await exec(process.execPath, [tsc, '-p', project, '--noEmit', '--singleThreaded']).catch(
    (error: { stdout: string }) => error,
  )
  expect(stdout).toBe('')
}, 60_000)

test('agents in the documents are valid, with the config that stands beside them', async () => {
  // Files of test cases have a test of their own.
  const agents = snippetsIn('yaml').filter(({ text }) => !/^cases:/mu.test(text))
  expect(agents.length).toBeGreaterThan(1)
  const dir = join(project, 'agents')
  // The documents call agents that ship.
  cpSync(join(root, 'agents'), dir, { recursive: true })
  agents.forEach(({ place, text }) => writeFileSync(join(dir, `${place.replaceAll(/\W/gu, '-')}.yaml`), text))
  const config = snippetsIn('ts').filter(({ text }) => text.startsWith('// agents/millrace.config.ts'))
  expect(config).toHaveLength(1)
  writeFileSync(join(dir, 'millrace.config.ts'), config[0]!.text)
  const { code, out } = await ran(['check', dir])
  expect([code, out]).toEqual([0, ''])
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

const python = ['python3', 'python'].find((name) => spawnSync(name, ['--version']).status === 0)
test.runIf(python !== undefined)('Python in the documents is Python', async () => {
  const programs = snippetsIn('python')
  expect(programs.length).toBeGreaterThan(0)
  for (const { text } of programs) await exec(python!, ['-c', 'import ast, sys; ast.parse(sys.argv[1])', text])
})

/** Those about the run of a line before are run by streaming-protocol.test.ts. */
const curls = snippetsIn('sh').flatMap(({ place, text }) =>
  text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line.startsWith('curl ') && !line.includes('$run'))
    .map((line) => ({ place, line })),
)

test('every curl line answers when it is pasted, in the order of the page', async () => {
  expect(curls.length).toBeGreaterThan(2)
  const server = await serving([join(root, 'agents'), '--data', join(folder(), 'data')])
  const said: string[] = []
  for (const { place, line } of curls) {
    const pasted = line.replaceAll('http://localhost:3000', server.url)
    const { stdout } = await exec('bash', ['-c', pasted.replaceAll('curl ', 'curl -sS --fail-with-body -m 15 ')])
    expect([place, stdout.length > 0, stdout.includes('"error"')]).toEqual([place, true, false])
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

test('every command in the documents exists, with its options', async () => {
  const lines = snippetsIn('sh', '').flatMap(({ text }) => text.match(/^npx millrace .*$/gmu) ?? [])
  expect(lines.length).toBeGreaterThan(6)
  const commands = [...new Set(lines.map((line) => line.split(' ')[2]!))]
  const helps = new Map(
    await Promise.all(commands.map(async (command) => [command, await ran([command, '--help'])] as const)),
  )
  for (const line of lines) {
    const { code, out } = helps.get(line.split(' ')[2]!)!
    expect([line, code]).toEqual([line, 0])
    const options = line.replace(/#.*/u, '').match(/(?<= )--?[a-z][a-z-]*/gu) ?? []
    for (const option of options) expect(out, line).toMatch(new RegExp(`(^|[ ,])${option}\\b`, 'mu'))
  }
})

test('every link to a file finds it', () => {
  for (const document of documents) {
    for (const [, target] of readDocument(document)
      .replaceAll(/`[^`\n]*`/gu, '')
      .matchAll(/\]\((?!https?:)([^)#]+)\)/gu)) {
      expect(existsSync(resolve(root, dirname(document), target!)), `${document}: ${target}`).toBe(true)
    }
  }
})
