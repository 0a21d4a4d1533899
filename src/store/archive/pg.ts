/** What the archive uses of `pg`. Its own types are another package. */

export interface Client {
  query<T>(text: string, values?: readonly unknown[]): Promise<{ rows: T[]; rowCount: number | null }>
  /** With an error the connection is closed. */
  release(error?: Error): void
}

export interface Pool {
  connect(): Promise<Client>
  on(event: 'error', listener: (error: Error) => void): this
  end(): Promise<void>
}

export interface Pg {
  Pool: new (options: {
    connectionString: string
    max: number
    connectionTimeoutMillis: number
    idleTimeoutMillis: number
    query_timeout: number
    keepAlive: boolean
    allowExitOnIdle: boolean
    application_name: string
  }) => Pool
}
