/**
 * The tool with which a `router` hands over to the step that answers. Its calls and results are in the log, but clients do
 * not see them as tool calls.
 */
export const respondTool = 'respond'
