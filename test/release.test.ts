/** What must be so before the package is published, and what `.github/workflows/release.yml` does then. */
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { load } from 'js-yaml'
import { marked, type Token } from 'marked'
import { expect, onTestFinished, test } from 'vitest'
import { pages, placeholder, releaseFaults } from '../scripts/release/checks.ts'
import { withAbsoluteLinks } from '../scripts/release/package-page.ts'

const root = resolve(import.meta.dirname, '..')
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const { version } = JSON.parse(read('package.json')) as { version: string }

/** A checkout that is ready: the owner is named, and the changelog has a date. Links may lead to whatever is in the real one. */
function readyCheckout(): { folder: string; change: (file: string, from: string | RegExp, to: string) => void } {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-release-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const file of ['package.json', 'CONTRIBUTING.md', 'LICENSE', 'NOTICE', ...pages])
    cpSync(join(root, file), join(folder, file))
  for (const part of ['docs', 'decisions', 'agents', 'examples']) symlinkSync(join(root, part), join(folder, part))
  const change = (file: string, from: string | RegExp, to: string) =>
    writeFileSync(join(folder, file), readFileSync(join(folder, file), 'utf8').replaceAll(from, to))
  change('package.json', placeholder, 'acme')
  change('CHANGELOG.md', / \(not released\)$/gmu, ' (2026-12-01)')
  return { folder, change }
}

test('the placeholder of the owner stands in package.json alone; who names it says that it is one', () => {
  const notOurs = new Set(['node_modules', 'dist', '.git', '.millrace', '.next'])
  const files = globSync(['**/*.{md,json,ts,tsx,yml,yaml,js}', '.{ci,github}/**/*'], {
    cwd: root,
    withFileTypes: true,
    exclude: ({ name }) => notOurs.has(name),
  })
    .filter((each) => each.isFile())
    .map((each) => relative(root, join(each.parentPath, each.name)))
    .filter((file) => file !== 'test/release.test.ts' && read(file).includes(placeholder))
  const naming = ['CONTRIBUTING.md', 'docs/releasing.md', 'scripts/release/checks.ts']
  expect(files).toEqual(expect.arrayContaining(naming))
  // Once it is replaced, it stands nowhere.
  expect([[], ['package.json']]).toContainEqual(files.filter((file) => !naming.includes(file)))
})

test('a release is refused with every reason at once, and what is ready is not', () => {
  const { folder, change } = readyCheckout()
  expect(releaseFaults(folder, `v${version}`)).toEqual([])
  change('package.json', 'acme', placeholder)
  change('CHANGELOG.md', /^## .+$/gmu, '## 0.0.1 (2026-01-01)')
  change('README.md', 'docs/images/run-dark.png', 'docs/images/gone.png')
  for (const page of pages) change(page, 'docs/web.md', 'docs/gone.md')
  expect(releaseFaults(folder, 'v9.9.9')).toEqual([
    expect.stringContaining(`package.json still has ${placeholder}`),
    expect.stringContaining(`the tag is v9.9.9, but package.json has version ${version}`),
    expect.stringContaining('CHANGELOG.md begins with "## 0.0.1 (2026-01-01)"'),
    expect.stringContaining('README.md links to docs/images/gone.png'),
    ...Array<unknown>(2).fill(expect.stringContaining('README.md links to docs/gone.md')),
    expect.stringContaining('CHANGELOG.md links to docs/gone.md'),
  ])
})

test('a changelog that says "not released" is one fault, of this checkout as of any', () => {
  const { folder, change } = readyCheckout()
  change('CHANGELOG.md', / \(2026-12-01\)$/gmu, ' (not released)')
  expect(releaseFaults(folder, `v${version}`)).toEqual([expect.stringContaining('(not released)')])
})

/** Where links and pictures lead, as a Markdown reader sees it. */
function targetsIn(markdown: string): string[] {
  const targets: string[] = []
  const tokens: Token[] = marked.lexer(markdown)
  void marked.walkTokens(tokens, (token) => {
    if (token.type === 'link' || token.type === 'image') targets.push((token as { href: string }).href)
    if (token.type === 'html')
      targets.push(...Array.from(token.raw.matchAll(/(?:src|srcset|href)="([^"]+)"/gu), ([, target]) => target!))
  })
  return targets
}

test.each(pages)(
  '%s, on the page of the package: each link names the repository and the tag, and what is there',
  (page) => {
    const base = 'https://host/acme/millrace'
    const before = targetsIn(read(page))
    const after = targetsIn(withAbsoluteLinks(read(page), base, 'v1.2.3', root))
    expect(before.length).toBeGreaterThan(10)
    expect(after).toHaveLength(before.length)
    after.forEach((target, index) => {
      if (target === before[index]) return expect(target).toMatch(/^https?:\/\/|^#/u)
      const [, kind, path] = /^https:\/\/host\/acme\/millrace\/(blob|tree|raw)\/v1\.2\.3\/([^#]+)/u.exec(target) ?? []
      expect([target, existsSync(join(root, path!))]).toEqual([target, true])
      expect([path, kind === 'raw']).toEqual([path, path!.endsWith('.png')])
    })
  },
)

test('what stands in code is no link', () => {
  const text = 'Write `[a](b.md)`:\n```md\n[a](b.md)\n```\n'
  expect(withAbsoluteLinks(text, 'https://host/x', 'v1', root)).toBe(text)
})

test('the workflow publishes tags that the check takes, with provenance, without a secret, and lets nothing else identify itself', () => {
  const text = read('.github/workflows/release.yml')
  const workflow = load(text) as {
    on: unknown
    permissions: unknown
    jobs: Record<string, { needs?: string; permissions?: unknown; steps: { run?: string; env?: unknown }[] }>
  }
  expect(workflow.on).toEqual({ push: { tags: ['v*.*.*'] } })
  expect(workflow.permissions).toEqual({ contents: 'read' })
  expect(text).not.toMatch(/secrets\.|token:(?! write)|_TOKEN/iu)
  const { test: tests, publish } = workflow.jobs
  const runs = (job: typeof tests) => job!.steps.flatMap(({ run }) => run ?? [])
  expect(tests!.permissions).toBeUndefined()
  expect(runs(tests)).toEqual(['node scripts/release.ts "$GITHUB_REF_NAME"', '.ci/run'])
  expect(publish).toMatchObject({ needs: 'test', permissions: { contents: 'read', 'id-token': 'write' } })
  expect(runs(publish).slice(-2)).toEqual([
    'node scripts/release.ts "$GITHUB_REF_NAME" package',
    'npm publish ./package --provenance --access public',
  ])
})
