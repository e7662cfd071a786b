#!/usr/bin/env python3
"""Builds the documentation as a site that opens from disk, with search: gathers the pages, and has mkdocs and its theme Material
(Debian's packages mkdocs and mkdocs-material) build them. Nothing is downloaded, and the site loads nothing from elsewhere.

    tools/docs_site.py [FOLDER]        # build/docs; the site is FOLDER/site, its first page FOLDER/site/index.html

The pages are README.md, docs/, and what they link to, each at its own path. A file that is no page, such as a program, becomes one
that shows it. Names of pages in the text (docs/crawl.md) become links. GitHub's Markdown is brought to mkdocs': comments that say how
an example is tested go, and `\\|` in code in a table loses its backslash.
Exit status: 0, or 1 when mkdocs is not there or finds a fault, such as a link that leads nowhere."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIRST = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'clients/python/README.md', 'clients/js/README.md']
PICTURES = {'.svg', '.png', '.jpg', '.gif'}
LINK = re.compile(r'(\]\(|(?:src|srcset|href)=")([^)"#\s:]+)(?=[)"#\s])')
# A page by its name in running text: not part of a longer path, and not in code or in a link.
MENTION = re.compile(r'(?<![\w/".-])((?:docs/[\w/-]+|ARCHITECTURE|CONTRIBUTING|CHANGELOG|clients/\w+/README)\.md)(?![\w/])')
CODE = re.compile(r'(`[^`]*`|\[[^\]]*\](?:\([^)]*\))?|<[^>]*>)')


class Site:
    def __init__(self, folder):
        self.folder = folder
        self.pages = folder / 'pages'
        self.gathered = set()

    def gather(self):
        shutil.rmtree(self.pages, ignore_errors=True)
        waiting = [ROOT / name for name in FIRST] + sorted((ROOT / 'docs').rglob('*.md'))
        while waiting:
            file = waiting.pop()
            if file not in self.gathered:
                self.gathered.add(file)
                waiting += self.add(file)

    def add(self, file):
        """Writes the page that a file becomes; gives the files that it links to."""
        target = self.pages / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix in PICTURES:
            shutil.copyfile(file, target)
            return []
        if file.suffix != '.md':
            target.with_name(file.name + '.md').write_text(shown(file))
            return []
        linked = []
        target.write_text(to_mkdocs(file, linked))
        return linked


def shown(file):
    language = {'.py': 'python', '.mjs': 'javascript', '.js': 'javascript', '.cpp': 'cpp', '.hpp': 'cpp', '.toml': 'toml',
                '.sh': 'bash', '.go': 'go'}.get(file.suffix, '')
    return f'# {file.relative_to(ROOT)}\n\n````{language}\n{file.read_text().rstrip()}\n````\n'


def to_mkdocs(page, linked):
    """The page's text for mkdocs. Appends the files of ours that it links to."""
    written, fence = [], None
    for line in page.read_text().split('\n'):
        mark = re.match(r'\s*(`{3,})', line)
        if mark and (fence is None or mark[1] == fence):
            fence = mark[1] if fence is None else None
        elif fence is None:
            line = prose(page, line, linked)
        written.append(line)
    return '\n'.join(written)


def prose(page, line, linked):
    if re.fullmatch(r'\s*<!-- .* -->\s*', line):
        return ''
    if line.startswith('|'):
        line = re.sub(r'`[^`]*`', lambda code: code[0].replace('\\|', '|'), line)
    elif nested := re.match(r'( {2,3})([*-] |\S)', line):
        line = '    ' + line[len(nested[1]):]
    if not line.startswith('#'):
        line = ''.join(part if CODE.fullmatch(part) else MENTION.sub(lambda name: mention(page, name[0]), part)
                       for part in CODE.split(line))
    return LINK.sub(lambda link: link[1] + target_of(page, link[2], linked), line)


def mention(page, name):
    if not (ROOT / name).is_file() or ROOT / name == page:
        return name
    return f'[{name}]({os.path.relpath(ROOT / name, page.parent)})'


def target_of(page, address, linked):
    """Where a link leads on the site."""
    file = (page.parent / address).resolve()
    if not file.is_file() or ROOT not in file.parents:
        return address  # mkdocs tells of it
    linked.append(file)
    return address if file.suffix in PICTURES | {'.md'} else address + '.md'


def build(folder):
    if shutil.which('mkdocs') is None:
        sys.exit('docs_site: mkdocs is not there (apt-get install mkdocs mkdocs-material)')
    site = Site(folder)
    site.gather()
    config = (ROOT / 'mkdocs.yml').read_text()
    for name, path in (('docs_dir', site.pages), ('site_dir', folder / 'site'), ('custom_dir', ROOT / 'tools/docs-site')):
        config = re.sub(rf'(?m)^( *){name}: .*$', lambda line: f'{line[1]}{name}: {path}', config)
    (folder / 'mkdocs.yml').write_text(config)
    result = subprocess.run(['mkdocs', 'build', '--clean', '--config-file', folder / 'mkdocs.yml'], capture_output=True, text=True,
                            check=False)
    if result.returncode:
        sys.exit('\n'.join(line for line in result.stderr.splitlines() if re.search('WARNING|ERROR|Aborted', line)))
    index = folder / 'site/search/search_index.json'
    index.with_suffix('.js').write_text(f'__search_index_is({index.read_text()});\n')


if __name__ == '__main__':
    build(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / 'build/docs').absolute())
