import { expect, test } from 'vitest'
import { metadataKeyOf } from './openai-compatible.ts'

test('the key of the metadata is the name of each provider, in camel case if the request has options by that', () => {
  const both = { myServer: {}, otherServer: {} }
  expect(metadataKeyOf('my-server.chat', undefined)).toBe('my-server')
  expect(metadataKeyOf('my-server.chat', both)).toBe('myServer')
  expect(metadataKeyOf('other-server.chat', both)).toBe('otherServer')
  expect(metadataKeyOf('other-server.chat', { myServer: {} })).toBe('other-server')
  expect(metadataKeyOf('my-server.chat', both)).toBe('myServer')
})
