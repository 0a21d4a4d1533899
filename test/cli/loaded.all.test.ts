/** What the command loads before it does its work. Each module costs every start of it, so there must not be many. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { folder } from '../support/cli.ts'
import { millrace } from '../support/cli-process.ts'

const root = resolve('.')

interface Loaded {
  /** Files of ours. */
  own: string[]
  packages: Set<string>
  /** Node's, as `import` loads them. */
  builtin: Set<string>
}

/** Runs the command until it ends or prints `text`. */
async function loadedBy(args: string[], { cwd = folder(), text }: { cwd?: string; text?: string } = {}) {
  const list = join(folder(), 'loaded')
  const hook = `
    import { appendFileSync } from 'node:fs'
    import { registerHooks } from 'node:module'
    registerHooks({ load(url, context, next) {
      appendFileSync(${JSON.stringify(list)}, url + '\\n')
      return next(url, context)
    } })`
  const node = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`]
  const command = millrace(args, { cwd, node })
  if (text !== undefined) {
    await command.until(text)
    command.kill('SIGTERM')
  }
  await command.exit
  const found: Loaded = { own: [], packages: new Set(), builtin: new Set() }
  for (const url of readFileSync(list, 'utf8').trim().split('\n')) {
    if (url.startsWith('node:')) found.builtin.add(url)
    if (!url.startsWith('file:')) continue
    const path = fileURLToPath(url)
    const name = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/u.exec(path)?.[1]
    if (name !== undefined) found.packages.add(name)
    else if (path.startsWith(root)) found.own.push(path.slice(root.length + 1))
  }
  return found
}

describe('modules that a command loads', () => {
  test('--version loads its own few lines', async () => {
    const { own, packages } = await loadedBy(['--version'])
    expect([...packages]).toEqual([])
    expect(own.length).toBeLessThan(6)
  })

  test.each([[['--help']], [['__complete', 'serve', '--']]])(
    '%j loads the parser of the command line, and neither the server nor the store',
    async (args) => {
      const { own, packages, builtin } = await loadedBy(args)
      expect([...packages]).toEqual(['commander'])
      expect(builtin).not.toContain('node:sqlite')
      expect(own.filter((file) => /handler|store|runtime|schema/u.test(file))).toEqual([])
      expect(own.length).toBeLessThan(30)
    },
  )

  const agent =
    'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true, tools: [calculator] } }]'

  test('serve is ready before it loads what the first request needs: models, MCP, Node’s fetch, the schema for editors', async () => {
    const cwd = folder({ 'agents/a.yaml': agent, 'agents/millrace.schema.json': '{}' })
    const { own, packages, builtin } = await loadedBy(['serve', '--port', '0'], { cwd, text: 'ready at' })
    // js-yaml reads agents, zod checks them, hono finds routes. The fourth is there for its classes of errors.
    expect([...packages].toSorted()).toEqual(['@ai-sdk/provider', 'commander', 'hono', 'js-yaml', 'zod'])
    // To import this one is to load `fetch`.
    expect(builtin).not.toContain('node:http')
    expect(own.filter((file) => /demo|mcp|connection|verify|chat\b/u.test(file))).toEqual([])
    expect(own.length).toBeLessThan(115)
  })

  test('a config that imports millrace shares its modules with the command', async () => {
    const cwd = folder({
      'agents/a.yaml': agent,
      'agents/millrace.config.mjs': `
      import { defineConfig, MillraceError } from 'millrace'
      export default defineConfig({ callbacks: { note: () => { throw new MillraceError('mine', 'Mine.') } } })`,
    })
    mkdirSync(join(cwd, 'node_modules'))
    symlinkSync(root, join(cwd, 'node_modules/millrace'))
    const { own } = await loadedBy(['serve', '--port', '0'], { cwd, text: 'ready at' })
    expect(own).toContain('dist/index.js')
    expect(own.length).toBeLessThan(115)
  })

  test('compiled code is kept per user for the next start; a cache that cannot be written is no error', async () => {
    const cwd = folder()
    const version = async (env: Record<string, string>) => {
      const command = millrace(['--version'], { cwd, env })
      return [await command.exit, command.err]
    }
    writeFileSync(join(cwd, 'file'), '')
    expect(await version({ XDG_CACHE_HOME: join(cwd, 'file') })).toEqual([0, ''])
    expect(readdirSync(cwd)).toEqual(['file'])
    expect(await version({ XDG_CACHE_HOME: '', HOME: cwd })).toEqual([0, ''])
    expect(readdirSync(join(cwd, '.cache/millrace'))).toHaveLength(1)
  })
})
