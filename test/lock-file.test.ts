/**
 * `npm ci` refuses a lock file that leaves anything out. npm writes such a file itself where a registry lacks the binaries of other
 * platforms, so it is looked at here.
 */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

interface Locked {
  version?: string
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}
const read = (name: string) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')) as unknown
const { packages } = read('package-lock.json') as { packages: Record<string, Locked> }

test('the lock file holds every package that one of its packages names, for every platform', () => {
  expect(Object.keys(packages).length).toBeGreaterThan(150)
  const missing = Object.entries(packages).flatMap(([at, { dependencies, devDependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...(at === '' ? devDependencies : undefined), ...optionalDependencies })
      .filter((name) => !isFound(at, name))
      .map((name) => `${at} → ${name}`),
  )
  expect(missing).toEqual([])
})

test('the lock file is of this package.json', () => {
  const { dependencies, devDependencies } = read('package.json') as Locked
  expect(packages['']).toMatchObject({ dependencies, devDependencies })
})

test('the lock file names no registry', () => {
  expect(JSON.stringify(packages)).not.toContain('"resolved"')
})

function isFound(at: string, name: string): boolean {
  for (let base = at; ; base = base.slice(0, base.lastIndexOf('node_modules/')).replace(/\/$/u, '')) {
    if (`${base === '' ? '' : `${base}/`}node_modules/${name}` in packages) return true
    if (base === '') return false
  }
}
