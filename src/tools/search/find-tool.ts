/** The tool with which a model finds other tools. */

export const findTool = 'find_tools'

/** Tools that one search finds. */
export const mostFound = 8
