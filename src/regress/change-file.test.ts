/** Several processes change one file of cases: nobody's change is lost, and nothing is left behind. */
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { folder } from '../../test/support/cli.ts'
import { changeFile } from './change-file.ts'

const code = (expected: string) => expect.objectContaining({ code: expected }) as Error

test('a text is replaced only if it is the one that was read; what else there is stays', () => {
  const root = folder({ 'a.yaml': 'one' })
  const path = join(root, 'a.yaml')
  chmodSync(path, 0o640)
  changeFile(path, 'one', (write) => write('two'))
  expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual(['two', 0o640])
  for (const seen of ['one', undefined]) {
    expect(() => changeFile(path, seen, () => expect.fail('changed'))).toThrow(code('tests-changed'))
  }
  expect(() => changeFile(join(root, 'none.yaml'), 'one', () => expect.fail('changed'))).toThrow(code('tests-changed'))
  changeFile(join(root, 'new/b.yaml'), undefined, (write) => write('b'))
  // A link stays one.
  symlinkSync(path, join(root, 'link.yaml'))
  changeFile(join(root, 'link.yaml'), 'two', (write) => write('three'))
  expect(readFileSync(path, 'utf8')).toBe('three')
  changeFile(path, 'three', (write) => write(undefined))
  expect(readdirSync(root).toSorted()).toEqual(['link.yaml', 'new'])
  expect(readdirSync(join(root, 'new'))).toEqual(['b.yaml'])
})

test('one process at a time; what one left that was killed stops nobody for long', () => {
  const root = folder({ 'a.yaml': 'one' })
  const path = join(root, 'a.yaml')
  changeFile(path, 'one', (write) => {
    expect(() => changeFile(path, 'one', () => expect.fail('changed'))).toThrow(
      /^Another process is changing .*a\.yaml now\./u,
    )
    write('two')
  })
  expect(() => changeFile(path, 'two', () => expect.fail('x'))).toThrow('x')
  const lock = join(root, '.a.yaml.lock')
  writeFileSync(lock, '1')
  expect(() => changeFile(path, 'two', (write) => write('three'))).toThrow(code('tests-changed'))
  utimesSync(lock, 1, 1)
  changeFile(path, 'two', (write) => write('three'))
  expect([readFileSync(path, 'utf8'), readdirSync(root)]).toEqual(['three', ['a.yaml']])
})
