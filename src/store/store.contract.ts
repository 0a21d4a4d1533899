/** The tests that every store must pass: `storeContract('memory', () => memoryStore())`. */
import { afterEach, beforeEach, describe } from 'vitest'
import type { Store } from '../part/log.ts'
import { appendContract } from './contract/append.contract.ts'
import { changesContract } from './contract/changes.contract.ts'
import { closeContract } from './contract/close.contract.ts'
import { compactedContract } from './contract/compacted.contract.ts'
import { fleetContract } from './contract/fleet.contract.ts'
import { forkContract } from './contract/fork.contract.ts'
import { inboxContract } from './contract/inbox.contract.ts'
import { feedbackContract } from './contract/feedback.contract.ts'
import { testResultsContract } from './contract/test-results.contract.ts'
import { ledgerContract } from './contract/ledger.contract.ts'
import { ownersContract } from './contract/owners.contract.ts'
import { readOptionsContract } from './contract/read-options.contract.ts'
import { readContract } from './contract/read.contract.ts'
import { runsContract } from './contract/runs.contract.ts'
import { threadTitlesContract } from './contract/thread-titles.contract.ts'
import { usersContract } from './contract/users.contract.ts'
import { viewsContract } from './contract/views.contract.ts'

const sections = [
  appendContract,
  ownersContract,
  readContract,
  readOptionsContract,
  inboxContract,
  runsContract,
  usersContract,
  changesContract,
  forkContract,
  compactedContract,
  viewsContract,
  fleetContract,
  closeContract,
]

export function storeContract(name: string, make: () => Store | Promise<Store>, { hasLedger = true } = {}): void {
  describe(`${name} store`, () => {
    let store: Store
    beforeEach(async () => {
      store = await make()
    })
    afterEach(() => store.close())
    for (const section of sections) section(() => store)
    if (hasLedger) {
      ledgerContract(() => store)
      feedbackContract(() => store)
      testResultsContract(() => store)
      threadTitlesContract(() => store)
    }
  })
}
