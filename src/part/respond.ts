/**
 * The tool with which a `router` hands over to the step that answers: its calls and their results are in the log like any
 * other's, and no client is told of them as of a tool's.
 */
export const respondTool = 'respond'
