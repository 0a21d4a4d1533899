/** The parts of the scripts that keep rows beside the logs. */
import { feedbackScript } from './feedback-script.ts'
import { ledgerScript } from './ledger-script.ts'
import { testResultsScript } from './test-results-script.ts'

export const keptScripts = [ledgerScript, feedbackScript, testResultsScript].join('\n')
