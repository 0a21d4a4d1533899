import { expect, test } from 'vitest'
import { createApp } from './router.ts'

test('routes are found as by the tree, first and again, also those that are added later', async () => {
  const app = createApp()
  app.get('/a', (c) => c.text('a'))
  app.post('/a', (c) => c.text('post a'))
  app.get('/a/:id', (c) => c.text(`a of ${c.req.param('id')}`))
  app.get('/a/b', (c) => c.text('never: the one before it comes first'))
  app.get('/b/c', (c) => c.text('b c'))
  app.get('/b/:id', (c) => c.text(`b of ${c.req.param('id')}`))
  const said = async (method: string, path: string) => {
    const response = await app.fetch(new Request(`http://here${path}`, { method }))
    return response.status === 200 ? response.text() : response.status
  }
  for (const _ of ['first', 'again']) {
    expect(await said('GET', '/a')).toBe('a')
    expect(await said('POST', '/a')).toBe('post a')
    expect(await said('PUT', '/a')).toBe(404)
    expect(await said('GET', '/a/b')).toBe('a of b')
    expect(await said('GET', '/a/x')).toBe('a of x')
    expect(await said('GET', '/a/y')).toBe('a of y')
    expect(await said('GET', '/a/:id')).toBe('a of :id')
    expect(await said('GET', '/b/c')).toBe('b c')
    expect(await said('GET', '/b/d')).toBe('b of d')
    expect(await said('GET', '/c')).toBe(404)
  }
  // Only that: there may be any number of paths with ids.
  const isKept = (path: string) => app.router.match('GET', path) === app.router.match('GET', path)
  expect(['/a', '/b/c', '/a/x', '/c'].map(isKept)).toEqual([true, true, false, false])
  expect(app.router.match('GET', '/a')[0]).toHaveLength(1)
  app.get('/a', (c) => c.text('behind the one that was there'))
  expect(app.router.match('GET', '/a')[0]).toHaveLength(2)
  app.get('/c', (c) => c.text('c'))
  expect(await said('GET', '/c')).toBe('c')
  expect(await said('GET', '/a')).toBe('a')
})
