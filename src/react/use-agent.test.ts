/** What a server renders of `useAgent`. The rest is tested in a browser, with examples/react. */
import { createElement, StrictMode } from 'react'
import { renderToString } from 'react-dom/server'
import { describe, expect, test } from 'vitest'
import { MillraceClient } from '../client/client.ts'
import { MillraceProvider } from './client-context.ts'
import { useAgent } from './use-agent.ts'

describe('useAgent', () => {
  test('on a server it asks nothing and shows the state before anything is known', () => {
    let asked = 0
    const client = new MillraceClient({ fetch: () => (asked++, Promise.reject(new Error('no'))) })
    function Chat({ threadId }: { threadId?: string }) {
      const { status, messages, requests } = useAgent({ agent: 'a', threadId })
      return createElement('p', null, `${status} ${messages.length} ${requests.length}`)
    }
    const render = (threadId?: string) =>
      renderToString(
        createElement(
          StrictMode,
          null,
          createElement(MillraceProvider, { client }, createElement(Chat, threadId === undefined ? {} : { threadId })),
        ),
      )
    expect([render(), render('t'), asked]).toEqual(['<p>ready 0 0</p>', '<p>loading 0 0</p>', 0])
  })
})
