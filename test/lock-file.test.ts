/**
 * `npm ci` refuses a lock file that leaves anything out. npm writes such a file itself where a registry lacks the binaries of other
 * platforms, so it is looked at here. The example for Next.js has a lock file of its own, which names the packed package.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

interface Locked {
  version?: string
  resolved?: string
  integrity?: string
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}
const read = (name: string) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')) as unknown
type Packages = Record<string, Locked>
const packagesOf = (folder: string) => (read(`${folder}package-lock.json`) as { packages: Packages }).packages

describe.each([
  ['', 150],
  ['examples/nextjs/', 80],
])('%spackage-lock.json', (folder, least) => {
  const packages = packagesOf(folder)

  test('the lock file holds every package that one of its packages names, for every platform', () => {
    expect(Object.keys(packages).length).toBeGreaterThan(least)
    const missing = Object.entries(packages).flatMap(([at, { dependencies, devDependencies, optionalDependencies }]) =>
      Object.keys({ ...dependencies, ...(at === '' ? devDependencies : undefined), ...optionalDependencies })
        .filter((name) => !isFound(packages, at, name))
        .map((name) => `${at} → ${name}`),
    )
    expect(missing).toEqual([])
  })

  test('the lock file is of its package.json', () => {
    const { dependencies, devDependencies } = read(`${folder}package.json`) as Locked
    expect(packages['']).toMatchObject({ dependencies, devDependencies })
  })

  test('the lock file names no registry', () => {
    const foreign = Object.values(packages).filter(
      ({ resolved }) => resolved !== undefined && !/^file:[\w.-]+$/u.test(resolved),
    )
    expect(foreign).toEqual([])
  })
})

const renew =
  'Run `npm pack ../.. && npm install --package-lock-only millrace@file:…` in examples/nextjs; CONTRIBUTING.md says what to mend then.'
test('the example for Next.js takes the package as it is packed here', () => {
  const { version, dependencies } = read('package.json') as Locked
  const { dependencies: wanted } = read('examples/nextjs/package.json') as Locked
  expect(wanted!['millrace']).toBe(`file:millrace-${version}.tgz`)
  // Without `integrity`, which is another one after each change.
  const locked = packagesOf('examples/nextjs/')['node_modules/millrace']!
  expect([locked.version, locked.dependencies, locked.integrity], renew).toEqual([version, dependencies, undefined])
})

function isFound(packages: Packages, at: string, name: string): boolean {
  for (let base = at; ; base = base.slice(0, base.lastIndexOf('node_modules/')).replace(/\/$/u, '')) {
    if (`${base === '' ? '' : `${base}/`}node_modules/${name}` in packages) return true
    if (base === '') return false
  }
}
