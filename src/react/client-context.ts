/** The client of a page, for every `useAgent` in it. */
import { createContext, createElement, useContext, type ReactNode } from 'react'
import { MillraceClient } from '../client/client.ts'

const ClientContext = createContext<MillraceClient | undefined>(undefined)

/** Gives a client to every `useAgent` below. Without it they use the server that the page comes from. */
export function MillraceProvider({ client, children }: { client: MillraceClient; children?: ReactNode }): ReactNode {
  return createElement(ClientContext.Provider, { value: client }, children)
}

let ofPage: MillraceClient | undefined

export function useClient(given: MillraceClient | undefined): MillraceClient {
  const provided = useContext(ClientContext)
  return given ?? provided ?? clientOfPage()
}

function clientOfPage(): MillraceClient {
  return (ofPage ??= new MillraceClient())
}
