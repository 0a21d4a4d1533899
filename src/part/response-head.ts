/** The status and headers of a `Response` that is passed through, without connection-specific headers and `set-cookie`. */
export interface ResponseHead {
  status: number
  statusText?: string
  headers: [name: string, value: string][]
  /** The body is binary: it is in the `file` part that follows. */
  binary?: true
}
