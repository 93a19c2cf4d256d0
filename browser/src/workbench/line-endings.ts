/**
 * Keeps the line ends of a file. A text area knows only LF; this module puts back CR LF and CR.
 */
import { lineChanges } from './patch/myers';

const LINE = /[^\r\n]*(?:\r\n|\r|\n|$)/g;

function split( text: string ): string[] {
	return ( text.match( LINE ) ?? [] ).filter( ( line ) => '' !== line );
}

function body( line: string ): string {
	return line.replace( /\r\n$|\r$|\n$/, '' );
}

/** Returns the text as a text area shows it. */
export function normalized( text: string ): string {
	return text.replace( /\r\n?/g, '\n' );
}

/** Returns the edited text with the line ends of the original: unchanged lines keep theirs, new ones get the most frequent. */
export function restored( original: string, edited: string ): string {
	if ( ! original.includes( '\r' ) ) {
		return edited;
	}
	if ( normalized( original ) === edited ) {
		return original;
	}
	const old = split( original );
	const fresh = split( edited );
	const counts = new Map< string, number >();
	old.forEach( ( line ) => {
		const end = line.slice( body( line ).length );
		if ( end ) {
			counts.set( end, ( counts.get( end ) ?? 0 ) + 1 );
		}
	} );
	const usual = [ ...counts ].sort( ( a, b ) => b[ 1 ] - a[ 1 ] )[ 0 ]?.[ 0 ] ?? '\n';
	const numbers = new Map< string, number >();
	const number = ( line: string ) => {
		const known = numbers.get( line ) ?? numbers.size;
		numbers.set( line, known );
		return known;
	};
	const out = fresh.map( ( line ) => ( line.endsWith( '\n' ) ? body( line ) + usual : line ) );
	const changes = lineChanges(
		Int32Array.from( old, ( line ) => number( normalized( line ) ) ),
		Int32Array.from( fresh, ( line ) => number( line ) )
	);
	for ( const change of changes ) {
		for ( let i = 0; 'equal' === change.kind && i < change.oldLength; i++ ) {
			out[ change.new + i ] = old[ change.old + i ]!;
		}
	}
	return out.join( '' );
}
