/**
 * Splits a typed command line into a command and its arguments, with the quoting of a shell.
 */
import { i18n } from './i18n';

/** A line that the terminal cannot run. */
export class CommandLineError extends Error {
	readonly code = 'wp_codebox_browser_command_unsupported';
}

/** Returns the words of a line; the first is the command. An empty line has none. */
export function words( line: string ): string[] {
	const out: string[] = [];
	let word: string | null = null;
	let quote = '';
	for ( let at = 0; at < line.length; at++ ) {
		const character = line[ at ]!;
		const next = line[ at + 1 ];
		if ( "'" === quote ) {
			quote = "'" === character ? '' : quote;
			word += "'" === character ? '' : character;
		} else if ( '"' === quote ) {
			if ( '"' === character ) {
				quote = '';
			} else if ( '\\' === character && undefined !== next && '"\\$`'.includes( next ) ) {
				word += next;
				at += 1;
			} else {
				word += character;
			}
		} else if ( "'" === character || '"' === character ) {
			quote = character;
			word ??= '';
		} else if ( '\\' === character && undefined !== next ) {
			word = ( word ?? '' ) + next;
			at += 1;
		} else if ( /\s/.test( character ) ) {
			if ( null !== word ) {
				out.push( word );
			}
			word = null;
		} else if ( '|&;<>`'.includes( character ) || ( '$' === character && '(' === next ) ) {
			throw new CommandLineError(
				/* translators: %s: a character such as |. */
				i18n.sprintf( i18n.__( 'The terminal runs one command at a time; %s is not supported. Put it into quotes when it is part of an argument.', 'codebox' ), character )
			);
		} else {
			word = ( word ?? '' ) + character;
		}
	}
	if ( quote ) {
		throw new CommandLineError( i18n.__( 'A quotation mark is not closed.', 'codebox' ) );
	}
	return null === word ? out : [ ...out, word ];
}
