/** The head of a `Response` that is answered as it is, without what belongs to one connection and without `set-cookie`. */
export interface ResponseHead {
  status: number
  statusText?: string
  headers: [name: string, value: string][]
  /** The body is no text: it is the `file` part that follows. */
  binary?: true
}
