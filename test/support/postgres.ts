/** Tests that need a Postgres server. */
import { afterAll, beforeAll, describe } from 'vitest'
import { postgresFault, startPostgres, type PostgresServer } from './postgres-server.ts'

/** Tests with one server for all of them; skipped by name where there is none. */
export function describePostgres(name: string, tests: (postgres: () => PostgresServer) => void): void {
  describe.skipIf(postgresFault !== '')(name + postgresFault, () => {
    let server: PostgresServer
    beforeAll(async () => void (server = await startPostgres()))
    afterAll(() => server.close())
    tests(() => server)
  })
}
