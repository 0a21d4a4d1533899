/** The layers of the house, derived from the source each time: who may import whom, and what reaches no Node. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { parseSync } from 'rolldown/utils'
import { describe, expect, test } from 'vitest'

const src = resolve(import.meta.dirname, '../src')

interface Import {
  from: string
  specifier: string
  /** The file under src it stands for; absent for packages and Node's own. */
  target?: string
  /** Erased when compiled. */
  typeOnly: boolean
  /** `import('…')`: loaded when that line runs. */
  isLazy: boolean
}

interface Source {
  file: string
  text: string
  imports: Import[]
}

const isTest = (file: string) => /\.(test|contract)\.tsx?$/u.test(file) || file.includes('/testing/')
const sources = new Map(
  readdirSync(src, { recursive: true, encoding: 'utf8' })
    .map((name) => name.split(sep).join('/'))
    .filter((name) => /\.tsx?$/u.test(name) && !isTest(name))
    .map((file): [string, Source] => {
      const text = readFileSync(join(src, file), 'utf8')
      return [file, { file, text, imports: importsOf(file, text) }]
    }),
)
const all = [...sources.values()].flatMap(({ imports }) => imports)

function importsOf(file: string, text: string): Import[] {
  const { module } = parseSync(file, text, { lang: file.endsWith('x') ? 'tsx' : 'ts' })
  const found: Omit<Import, 'from' | 'target'>[] = []
  for (const { moduleRequest, entries, start, end } of module.staticImports) {
    const typeOnly =
      /^import type\b/u.test(text.slice(start, end)) || (entries.length > 0 && entries.every(({ isType }) => isType))
    found.push({ specifier: moduleRequest.value, typeOnly, isLazy: false })
  }
  for (const { entries, start, end } of module.staticExports) {
    const specifier = entries.find(({ moduleRequest }) => moduleRequest !== null)?.moduleRequest?.value
    if (specifier === undefined) continue
    const typeOnly = /^export type\b/u.test(text.slice(start, end)) || entries.every(({ isType }) => isType)
    found.push({ specifier, typeOnly, isLazy: false })
  }
  for (const { moduleRequest } of module.dynamicImports) {
    const specifier = text.slice(moduleRequest.start, moduleRequest.end)
    // What stands in a variable is a user's file, never one of ours.
    if (/^['"]/u.test(specifier)) found.push({ specifier: specifier.slice(1, -1), typeOnly: false, isLazy: true })
  }
  return found.map((each) => {
    if (!each.specifier.startsWith('.')) return { from: file, ...each }
    const target = relative(src, resolve(src, dirname(file), each.specifier))
    return { from: file, ...each, target: target.split(sep).join('/') }
  })
}

const doors = [...sources.keys()].filter((file) => !file.includes('/') && file !== 'cli.ts')
const folderOf = (file: string) => (file.includes('/') ? file.slice(0, file.indexOf('/')) : 'doors')

/** What each folder may import beside itself, with everything that those may import. */
const layers: Record<string, string[]> = {
  part: [],
  async: [],
  fold: ['part'],
  ingest: ['fold'],
  pipeline: ['fold'],
  relay: ['part', 'async'],
  processes: ['part'],
  script: ['pipeline'],
  store: ['fold', 'async'],
  wire: ['fold'],
  models: ['pipeline', 'relay'],
  tools: ['models'],
  engine: ['tools', 'ingest', 'processes', 'script'],
  runtime: ['engine'],
  delivery: ['runtime', 'wire'],
  record: ['store', 'wire'],
  access: ['record', 'runtime'],
  project: ['delivery', 'record'],
  regress: ['project'],
  server: ['access', 'regress'],
  client: ['fold', 'async'],
  react: ['client'],
  'ag-ui': [],
  cli: ['server', 'client'],
}

function below(folder: string): Set<string> {
  const found = new Set<string>()
  for (const next of layers[folder] ?? []) for (const each of [next, ...below(next)]) found.add(each)
  return found
}

/** Every module that running this file may load, ours and foreign ones, with the way there; or what importing it loads at once. */
function reached(start: string, { atOnce = false } = {}): Map<string, string[]> {
  const ways = new Map<string, string[]>([[start, [start]]])
  for (const [file, way] of ways) {
    for (const { specifier, target, typeOnly, isLazy } of sources.get(file)?.imports ?? []) {
      const next = target ?? specifier
      if (!typeOnly && !(isLazy && atOnce) && !ways.has(next)) ways.set(next, [...way, next])
    }
  }
  return ways
}

function foreign(start: string, isWanted: (specifier: string) => boolean): string[] {
  return [...reached(start)].filter(([name]) => !sources.has(name) && isWanted(name)).map(([, way]) => way.join(' → '))
}

test('the sources were seen, and every import of a file finds it', () => {
  expect(sources.size).toBeGreaterThan(90)
  expect(all.length).toBeGreaterThan(400)
  expect(new Set(Array.from(sources.keys(), folderOf))).toEqual(new Set([...Object.keys(layers), 'doors']))
  for (const folder of [...Object.keys(layers), 'doors']) {
    expect([...sources.keys()].filter((file) => folderOf(file) === folder).length, folder).toBeGreaterThan(0)
  }
  expect(all.filter(({ target }) => target !== undefined && !sources.has(target))).toEqual([])
  expect(all.filter(({ typeOnly }) => typeOnly).length).toBeGreaterThan(100)
})

test('each folder imports only what lies below it, types included', () => {
  const wrong = all.filter(({ from, target }) => {
    if (target === undefined || folderOf(from) === 'doors') return false
    const [own, other] = [folderOf(from), folderOf(target)]
    return own !== other && !below(own).has(other)
  })
  expect(wrong.map(({ from, target }) => `${from} → ${target}`)).toEqual([])
})

test('nothing imports a door, and doors only re-export by name', () => {
  expect(doors).toEqual(expect.arrayContaining(['index.ts', 'part.ts', 'wire.ts', 'record.ts', 'server.ts']))
  expect(all.filter(({ target }) => target !== undefined && doors.includes(target))).toEqual([])
  for (const door of doors) {
    const statements = sources
      .get(door)!
      .text.replaceAll(/\/\*[^]*?\*\//gu, '')
      .trim()
    expect(statements, door).toMatch(/^(export (type )?(\{[^}]*\}|type \*) from '[^']+'\s*)+$/u)
    // A door that lets all values out lets out what nobody decided on.
    expect(statements, door).not.toMatch(/export \* from/u)
  }
})

describe('what works in a browser and at the edge', () => {
  const files = [...sources.keys()]
  const pure = files.filter((file) =>
    ['part', 'fold', 'ingest', 'async', 'wire', 'client', 'react'].includes(folderOf(file)),
  )
  const pureDoors = ['part.ts', 'ingest.ts', 'wire.ts', 'client.ts', 'react.ts'].filter((door) => sources.has(door))

  test('part/, fold/, async/, wire/, client and react reach no Node module and take only types from packages', () => {
    expect(pure.length + pureDoors.length).toBeGreaterThan(25)
    for (const file of [...pureDoors, ...pure]) {
      const allowed = folderOf(file) === 'react' || file === 'react.ts' ? /^react(\/|$)/u : /^$/u
      expect(foreign(file, (name) => !allowed.test(name))).toEqual([])
    }
  })

  test('the engine, its handler and the memory store reach no Node module', () => {
    for (const file of ['index.ts', 'server.ts', 'testing.ts', 'server/handler.ts', 'store/memory-store.ts']) {
      expect(reached(file).size, file).toBeGreaterThan(3)
      expect(foreign(file, (name) => name.startsWith('node:'))).toEqual([])
    }
  })

  test('a way to Node would be seen', () => {
    expect(foreign('record.ts', (name) => name === 'node:sqlite')).toHaveLength(1)
    expect(foreign('server/serve.ts', (name) => name === 'node:fs')).toHaveLength(1)
  })
})

test('LangChain and the demo model are loaded only by those who use them', () => {
  const isExtra = (file: string) => /^models\/(demo|langchain)\//u.test(file)
  const users = [...sources.keys()].filter((file) => !isExtra(file) && file !== 'langchain.ts')
  const loading = users.flatMap((file) => [...reached(file, { atOnce: true })].filter(([name]) => isExtra(name)))
  expect(loading.map(([, way]) => way.join(' → '))).toEqual([])
  // A way there would be seen.
  expect(reached('langchain.ts', { atOnce: true }).has('models/langchain/langchain.ts')).toBe(true)
  expect(reached('index.ts').has('models/demo/demo.ts')).toBe(true)
  expect(reached('index.ts').has('models/langchain/langchain.ts')).toBe(false)
})

test("Node's modules are named with node:, so that none hides as a package", () => {
  const packages = JSON.parse(readFileSync(join(src, '../package.json'), 'utf8')) as Record<string, object>
  const known = Object.keys({ ...packages['dependencies'], ...packages['peerDependencies'] })
  const strange = all.filter(
    ({ specifier, target }) =>
      target === undefined &&
      !specifier.startsWith('node:') &&
      !known.some((name) => specifier === name || specifier.startsWith(`${name}/`)),
  )
  expect(strange.map(({ from, specifier }) => `${from} → ${specifier}`)).toEqual([])
})

test('only models/model.ts imports the AI SDK, types included', () => {
  const users = all.filter(({ specifier }) => /^ai(\/|$)/u.test(specifier)).map(({ from }) => from)
  expect([...new Set(users)]).toEqual(['models/model.ts'])
})

/** Of each class: how many fields an instance has, and whether one of them, or a method, has a name with `#`. */
function classesOf({ file, text }: Source): { name: string; fields: number; hashed: boolean }[] {
  const { program } = parseSync(file, text, { lang: file.endsWith('x') ? 'tsx' : 'ts' })
  return program.body.flatMap((node) => {
    const declared = node.type === 'ExportNamedDeclaration' ? node.declaration : node
    if (declared?.type !== 'ClassDeclaration') return []
    const named = declared.body.body.flatMap((each) =>
      (each.type === 'PropertyDefinition' || each.type === 'MethodDefinition') && !each.static ? [each] : [],
    )
    return {
      name: declared.id?.name ?? '',
      fields: named.filter(({ type }) => type === 'PropertyDefinition').length,
      hashed: named.some(({ key }) => key.type === 'PrivateIdentifier'),
    }
  })
}

test('a class with many fields has none with `#`: V8 may keep its instances as hash tables (decisions/0028)', () => {
  const classes = [...sources.values()].flatMap(classesOf)
  expect(classes.length).toBeGreaterThan(40)
  expect(classes.filter(({ fields, hashed }) => hashed && fields > 13).map(({ name }) => name)).toEqual([])
  // It has those of `FoldingRun` as well.
  expect(classes.find(({ name }) => name === 'EngineState')).toMatchObject({ hashed: false })
})

test('files are short: none over 400 lines', () => {
  const lengths = [...sources.values()].map(({ file, text }) => ({ file, text, lines: text.split('\n').length - 1 }))
  const long = lengths.filter(({ lines }) => lines > 400)
  expect(long.map(({ file, lines }) => `${file}: ${lines}`)).toEqual([])
})

describe('the page', () => {
  const web = resolve(src, '../web')
  const files = readdirSync(web, { recursive: true, encoding: 'utf8' })
    .map((name) => name.split(sep).join('/'))
    .filter((name) => /\.tsx?$/u.test(name) && !isTest(name) && name !== 'vite.config.ts')
    .map((file) => ({ file, text: readFileSync(join(web, file), 'utf8') }))
  const code = (text: string) => text.replaceAll(/\/\*[^]*?\*\/|\/\/.*/gu, '')

  test('imports the pure rooms of src and nothing else of it', () => {
    expect(files.length).toBeGreaterThan(50)
    const pure = ['part', 'fold', 'wire', 'client', 'async', 'react']
    const wrong = files.flatMap(({ file, text }) =>
      importsOf(file, text).flatMap(({ specifier }) => {
        if (specifier.startsWith('node:')) return [`${file} → ${specifier}`]
        if (!specifier.startsWith('.')) return []
        const target = relative(src, resolve(web, dirname(file), specifier))
          .split(sep)
          .join('/')
        const isOwn = target.startsWith('../web/')
        return isOwn || pure.includes(folderOf(target)) ? [] : [`${file} → ${target}`]
      }),
    )
    expect(wrong).toEqual([])
  })

  test('rooms import no other room, and only the data folder and the hub open connections', () => {
    const roomOf = (path: string) => /^rooms\/([^/]+)/u.exec(path)?.[1]
    const wrong = files.flatMap(({ file, text }) =>
      importsOf(file, text).flatMap(({ specifier }) => {
        const other = specifier.startsWith('.')
          ? roomOf(relative(web, resolve(web, dirname(file), specifier)))
          : undefined
        return roomOf(file) === undefined || other === undefined || other === roomOf(file) ? [] : [`${file} → ${other}`]
      }),
    )
    expect(wrong).toEqual([])
    const open = files.filter(({ text }) =>
      /\bnew (?:EventSource|WebSocket|XMLHttpRequest)\b|(?<![.\w])fetch\(/u.test(code(text)),
    )
    expect(open.map(({ file }) => file).filter((file) => !/^(data|hub)\//u.test(file))).toEqual([])
  })

  test('makes no markup out of text', () => {
    const markup =
      /\b(innerHTML|outerHTML|dangerouslySetInnerHTML|insertAdjacentHTML|document\.write|srcdoc|DOMParser)\b/iu
    expect(files.filter(({ text }) => markup.test(code(text))).map(({ file }) => file)).toEqual([])
    expect(markup.test('element.innerHTML = text')).toBe(true)
  })

  test('its files are short, too', () => {
    expect(files.filter(({ text }) => text.split('\n').length - 1 > 400).map(({ file }) => file)).toEqual([])
  })
})

test('a command takes what it has of its process as a context: only main.ts looks at the process itself', () => {
  const looks = /\bprocess\.(?:stdin|stdout|stderr|env|cwd|chdir|exit|exitCode|on|once|off|emit)\b|= process$/mu
  const found = [...sources.values()].filter(({ file, text }) => file.startsWith('cli/') && looks.test(text))
  expect(found.map(({ file }) => file)).toEqual(['cli/main.ts'])
})
