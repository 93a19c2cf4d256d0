/**
 * The list of changes with their differences and digests.
 */
import type { ChangeSet, ShownChange } from '../changes';
import { i18n } from '../i18n';
import { button, code, download, el, on } from './dom';

/** Number of lines of a patch that are shown at first. */
const LINES = 400;

function status( change: ShownChange ): string {
	switch ( change.file.status ) {
		case 'added':
			return i18n.__( 'added', 'codebox' );
		case 'deleted':
			return i18n.__( 'deleted', 'codebox' );
		default:
			return i18n.__( 'modified', 'codebox' );
	}
}

/** Returns the kind of each line of one file's patch: inside a hunk, lines that look like headers are content. */
export function kinds( patch: string ): Array< { kind: 'meta' | 'hunk' | 'added' | 'removed' | 'same'; text: string } > {
	const lines = patch.split( '\n' );
	if ( '' === lines[ lines.length - 1 ] ) {
		lines.pop();
	}
	let old = 0;
	let fresh = 0;
	return lines.map( ( text ) => {
		if ( old <= 0 && fresh <= 0 ) {
			const hunk = /^@@ -\d+,(\d+) \+\d+,(\d+) @@/.exec( text );
			if ( hunk ) {
				old = Number( hunk[ 1 ] );
				fresh = Number( hunk[ 2 ] );
				return { kind: 'hunk', text };
			}
			return { kind: 'meta', text };
		}
		const sign = text.charAt( 0 );
		if ( '\\' === sign ) {
			return { kind: 'meta', text };
		}
		old -= '+' === sign ? 0 : 1;
		fresh -= '-' === sign ? 0 : 1;
		return { kind: '+' === sign ? 'added' : '-' === sign ? 'removed' : 'same', text };
	} );
}

function difference( patch: string ): HTMLElement {
	const box = el( 'pre', { class: 'wp-codebox-diff', dir: 'ltr', tabindex: 0 } );
	const rows = kinds( patch );
	const show = ( start: number ) => {
		for ( const { kind, text } of rows.slice( start, start + LINES ) ) {
			const tag = 'added' === kind ? 'ins' : 'removed' === kind ? 'del' : 'span';
			box.append( el( tag, { class: `wp-codebox-diff-line is-${ kind }` }, text + '\n' ) );
		}
		const rest = rows.length - start - LINES;
		if ( rest > 0 ) {
			const more = button( i18n.sprintf( i18n._n( 'Show %s more line', 'Show %s more lines', rest, 'codebox' ), rest ), () => {
				more.remove();
				show( start + LINES );
				box.focus();
			} );
			box.append( more );
		}
	};
	show( 0 );
	return box;
}

export class ChangesView {
	readonly element: HTMLElement;
	private readonly list: HTMLElement;
	private readonly open = new Set< string >();
	private digest = '';

	constructor( private readonly openFile: ( change: ShownChange ) => void ) {
		this.list = el( 'div', { class: 'wp-codebox-changes' } );
		this.element = el( 'div', { class: 'wp-codebox-changes-box' }, this.list );
		this.empty();
	}

	/** Shows the changes of the session. */
	show( changes: ChangeSet ): void {
		if ( changes.digest === this.digest ) {
			return;
		}
		this.digest = changes.digest;
		if ( 0 === changes.files.length ) {
			this.empty();
			return;
		}
		const summary = el(
			'p',
			{},
			i18n.sprintf( i18n._n( '%s file differs from the start of the session.', '%s files differ from the start of the session.', changes.files.length, 'codebox' ), changes.files.length ),
			' ',
			el( 'span', { class: 'wp-codebox-plus' }, `+${ changes.insertions }` ),
			' ',
			el( 'span', { class: 'wp-codebox-minus' }, `−${ changes.deletions }` )
		);
		const facts = el(
			'details',
			{ class: 'wp-codebox-digests' },
			el( 'summary', {}, i18n.__( 'Digest and patch', 'codebox' ) ),
			el( 'p', {}, i18n.__( 'When the change is stored, the site computes the patch again from its own copy of the code, and may divide it into other lines. The digests of each file equal those in the bundle if that copy is the code with which this session began.', 'codebox' ) ),
			el( 'dl', {}, el( 'dt', {}, i18n.__( 'Digest of the changes (SHA-256)', 'codebox' ) ), el( 'dd', {}, code( changes.digest ) ) ),
			el( 'p', { class: 'wp-codebox-buttons' }, button( i18n.__( 'Download patch.diff', 'codebox' ), () => download( 'patch.diff', changes.patch, 'text/x-diff' ) ) )
		);
		this.list.replaceChildren( summary, ...changes.files.map( ( change ) => this.row( change ) ), facts );
	}

	private empty(): void {
		this.list.replaceChildren( el( 'p', {}, i18n.__( 'Nothing was changed yet. Edit a file, or run a command that changes one.', 'codebox' ) ) );
	}

	private row( change: ShownChange ): HTMLElement {
		const { file } = change;
		const details = el( 'details', { class: 'wp-codebox-change', open: this.open.has( change.target ) } );
		const fill = () => {
			if ( details.open && 1 === details.childElementCount ) {
				const digests = [ ...( file.beforeSha256 ? [ el( 'dt', {}, i18n.__( 'Before', 'codebox' ) ), el( 'dd', {}, code( file.beforeSha256 ) ) ] : [] ), ...( file.afterSha256 ? [ el( 'dt', {}, i18n.__( 'After', 'codebox' ) ), el( 'dd', {}, code( file.afterSha256 ) ) ] : [] ) ];
				details.append(
					difference( change.patch ),
					el( 'dl', { class: 'wp-codebox-change-digests' }, digests ),
					change.after ? el( 'p', { class: 'wp-codebox-buttons' }, button( i18n.__( 'Open the file', 'codebox' ), () => this.openFile( change ) ) ) : ''
				);
			}
		};
		details.append(
			el(
				'summary',
				{},
				el( 'span', { class: `wp-codebox-badge is-${ file.status }` }, status( change ) ),
				' ',
				code( change.target ),
				' ',
				file.binary ? el( 'span', { class: 'wp-codebox-quiet' }, i18n.__( 'binary', 'codebox' ) ) : el( 'span', { class: 'wp-codebox-plus' }, `+${ file.insertions ?? 0 }` ),
				' ',
				file.binary ? null : el( 'span', { class: 'wp-codebox-minus' }, `−${ file.deletions ?? 0 }` )
			)
		);
		on( details, {
			toggle: () => {
				this.open[ details.open ? 'add' : 'delete' ]( change.target );
				fill();
			},
		} );
		fill();
		return details;
	}
}
