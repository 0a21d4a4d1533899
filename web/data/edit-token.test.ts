import { expect, test } from 'vitest'
import { readEditToken, takeEditToken } from './edit-token.ts'

/** A tab at an address. Its storage outlives a reload; `undefined`: the browser allows none. */
function openTab(hash: string, stored?: Map<string, string>) {
  const shown: unknown[] = []
  const tab = {
    location: { hash, pathname: '/agents/a', search: '?tab=runs' },
    history: { state: null, replaceState: (...how: unknown[]) => void shown.push(how[2]) },
    get sessionStorage() {
      if (stored === undefined) throw new Error('denied')
      return { getItem: (name: string) => stored.get(name) ?? null, setItem: stored.set.bind(stored) }
    },
  }
  takeEditToken(tab as unknown as Window)
  return shown
}

test('the token is taken out of the address and kept by the tab; other addresses stay as they are', () => {
  const stored = new Map<string, string>()
  expect([openTab('', stored), readEditToken()]).toEqual([[], undefined])
  expect([openTab('#edit=', stored), openTab('#main', stored), readEditToken()]).toEqual([[], [], undefined])
  expect([openTab('#edit=a-B_1', stored), readEditToken()]).toEqual([['/agents/a?tab=runs'], 'a-B_1'])
  expect([openTab('', stored), readEditToken()]).toEqual([[], 'a-B_1'])
  // That of another start of the server.
  expect([openTab('#edit=next', stored), readEditToken()]).toEqual([['/agents/a?tab=runs'], 'next'])
  // Where nothing can be stored.
  expect([openTab('#edit=last'), readEditToken()]).toEqual([['/agents/a?tab=runs'], 'last'])
  expect([openTab(''), readEditToken()]).toEqual([[], 'last'])
})
